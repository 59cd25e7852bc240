import functools
import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from fresh_store import fresh_store
from refusing import refuses
from store.conftest import Git
from store.killing import dies_at

from uwf_git.store.git.config import BadConfig
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.oid import Oid
from uwf_git.store.store import NotAStore, create_store, find_git_dir, open_store

ONE = Oid("1" * 40)


def test_a_new_store_is_an_empty_bare_repository(tmp_path: Path, git: Git) -> None:
    path = tmp_path / "new" / "store.git"
    store = create_store(str(path))
    assert store.path == str(path)
    assert git("rev-parse", "--is-bare-repository", cwd=path) == "true\n"
    assert git("for-each-ref", cwd=path) == ""
    assert git("fsck", "--strict", cwd=path) == ""
    assert git("symbolic-ref", "HEAD", cwd=path) == "refs/heads/main\n"


def test_a_store_that_is_there_is_not_made_anew(tmp_path: Path) -> None:
    path = str(tmp_path / "store.git")
    create_store(path).refs.create("refs/cas/a", ONE)
    Path(path, "config").write_text("[core]\n\tbare = true\n[uwf]\n\tagent = mine\n")
    again = create_store(path)
    assert again.refs.find("refs/cas/a") == ONE
    assert again.config.get("uwf.agent") == "mine"


def test_a_folder_that_is_there_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    assert create_store(str(tmp_path)).refs.names("refs/") == []
    assert (tmp_path / "kept").exists()


def test_making_a_store_killed_anywhere_can_be_done_again(tmp_path: Path, git: Git) -> None:
    for moment in itertools.count(1):
        path = tmp_path / f"store{moment}.git"
        if not dies_at(moment, functools.partial(create_store, str(path))):
            break
        create_store(str(path)).refs.create("refs/cas/a", ONE)
        if moment % 10 == 1:
            assert git("rev-parse", "--git-dir", cwd=path) == ".\n"
    assert moment > 15


CREATE = """
import sys
from uwf_git.store.git.config import add_config
from uwf_git.store.store import create_store
add_config(create_store(sys.argv[1]).path + "/config", "uwf.trustedAgent", sys.argv[2])
"""


def test_parallel_creation_of_a_store_loses_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "store.git")
    making = [subprocess.Popen([sys.executable, "-c", CREATE, path, str(n)]) for n in range(6)]
    assert [process.wait() for process in making] == [0] * 6
    found = open_store(path).config.get_all("uwf.trustedAgent")
    assert sorted(found) == [str(number) for number in range(6)]


def test_a_project_a_worktree_and_a_submodule_are_opened_where_their_refs_are(
    tmp_path: Path, git: Git
) -> None:
    project, library = tmp_path / "project", tmp_path / "library"
    for path in (project, library):
        path.mkdir()
        git("init", "--quiet", cwd=path)
        git("commit", "--quiet", "--allow-empty", "-m", "begin", cwd=path)
    git("worktree", "add", "--quiet", "../tree", cwd=project)
    allow = ("-c", "protocol.file.allow=always")
    git(*allow, "submodule", "--quiet", "add", "../library", "lib", cwd=project)
    common = str(project / ".git")
    found = {
        project: common,
        project / ".git": common,
        tmp_path / "tree": common,
        project / ".git" / "worktrees" / "tree": common,
        project / "lib": str(project / ".git" / "modules" / "lib"),
    }
    for path, git_dir in found.items():
        assert find_git_dir(str(path)) == git_dir
        assert open_store(str(path)).path == git_dir


def test_no_work_tree_index_or_head_is_touched(tmp_path: Path, git: Git) -> None:
    git("init", "--quiet", cwd=tmp_path)
    git("commit", "--quiet", "--allow-empty", "-m", "begin", cwd=tmp_path)
    before = git("status", "--porcelain", "--branch", cwd=tmp_path)
    head = (tmp_path / ".git" / "HEAD").read_bytes()
    store = open_store(str(tmp_path))
    store.refs.create("refs/cas/a", Oid(git("rev-parse", "HEAD", cwd=tmp_path).strip()))
    assert git("status", "--porcelain", "--branch", cwd=tmp_path) == before
    assert (tmp_path / ".git" / "HEAD").read_bytes() == head


@pytest.mark.parametrize("what", ["nothing", "file", "folder", "broken link", "broken worktree"])
def test_what_is_no_repository_is_refused_by_its_path(tmp_path: Path, what: str) -> None:
    path = tmp_path / "place"
    if what == "file":
        path.write_text("gitdir")
    elif what == "broken link":
        path.symlink_to("nowhere")
    elif what != "nothing":
        path.mkdir()
    if what == "broken worktree":
        (path / ".git").write_text("gitdir: /nowhere/.git/worktrees/place\n")
    assert find_git_dir(str(path)) is None
    with pytest.raises(NotAStore) as caught:
        open_store(str(path))
    says = "does not exist" if what == "nothing" else "is not a git repository"
    assert caught.value.message == f"{path} {says}"
    assert caught.value.exit_status == 1


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("objectFormat = sha256", "object format sha256"),
        ("refStorage = reftable", "ref storage reftable"),
    ],
)
def test_a_repository_of_another_kind_is_refused(tmp_path: Path, setting: str, words: str) -> None:
    create_store(str(tmp_path))
    with open(tmp_path / "config", "a") as file:
        file.write(f"[extensions]\n\t{setting}\n")
    with refuses("unsupported-repository", match=words):
        open_store(str(tmp_path))


def test_a_sha256_repository_of_gits_own_is_refused(tmp_path: Path, git: Git) -> None:
    git("init", "--quiet", "--bare", "--object-format=sha256", ".", cwd=tmp_path)
    with refuses("unsupported-repository", match=str(tmp_path)):
        open_store(str(tmp_path))


def test_broken_config_is_refused(tmp_path: Path) -> None:
    create_store(str(tmp_path))
    (tmp_path / "config").write_text("[broken")
    with pytest.raises(BadConfig, match=str(tmp_path / "config")):
        open_store(str(tmp_path))


def test_the_settings_of_the_repository_lie_over_those_of_the_user(
    tmp_path: Path, git: Git
) -> None:
    path = tmp_path / "store.git"
    create_store(str(path))
    git("config", "--file", tmp_path / "user", "uwf.agent", "theirs", cwd=path)
    git("config", "--file", tmp_path / "user", "user.name", "U Ser", cwd=path)
    git("config", "uwf.agent", "ours", cwd=path)
    environ = {"GIT_CONFIG_GLOBAL": str(tmp_path / "user"), "GIT_CONFIG_NOSYSTEM": "1"}
    config = open_store(str(path), environ=environ).config
    assert (config.get("uwf.agent"), config.get("user.name")) == ("ours", "U Ser")
    assert open_store(str(path)).config.get("user.name") is None


@pytest.mark.parametrize(("value", "durable"), [(None, True), ("true", True), ("false", False)])
def test_commits_are_forced_to_the_disk_unless_it_is_said(
    tmp_path: Path, git: Git, value: str | None, *, durable: bool
) -> None:
    create_store(str(tmp_path))
    if value is not None:
        git("config", "uwf.fsync", value, cwd=tmp_path)
    objects = open_store(str(tmp_path)).objects
    assert isinstance(objects, DurableObjects)
    assert objects.durable is durable


def test_what_can_be_deleted_lies_in_one_place(tmp_path: Path) -> None:
    store = create_store(str(tmp_path))
    assert store.local_path("locks", "a") == f"{tmp_path}/uwf/locks/a"


@pytest.mark.parametrize("content", ["", "\0" * 21, "garbage\n", "ref: x\n", "a" * 39])
def test_a_broken_head_is_refused_as_git_refuses_it(content: str, git: Git) -> None:
    store = fresh_store()
    Path(store.path, "HEAD").write_text(content)
    with pytest.raises(subprocess.CalledProcessError, match="128"):
        git("--git-dir", store.path, "rev-parse", cwd=Path(store.path))
    with refuses("broken-head", match="HEAD names no branch") as caught:
        open_store(store.path)
    assert caught.value.exit_status == 5
    command = (caught.value.hint or "").partition(": ")[2]
    subprocess.run(["sh", "-c", command], check=True)
    assert open_store(store.path).path == store.path


@pytest.mark.parametrize(
    "setting",
    [
        "garbage\n[core]",
        "[core]\nbare = tr",
        "[core]\nfilemode = tree",
        "[core]\nrepositoryformatversion = ''",
    ],
)
def test_settings_that_git_refuses_are_refused(setting: str) -> None:
    store = fresh_store()
    Path(store.path, "config").write_text(f"{setting}\n")
    with pytest.raises(BadConfig):
        open_store(store.path)
