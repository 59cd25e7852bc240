import functools
import itertools
import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fresh_store import fresh_store
from git_settings import remove_config
from refusing import refuses
from store.conftest import Git
from store.killing import dies_at
from store.story import Story

from uwf_git.model.names import Oid
from uwf_git.store.durable import find_user_file
from uwf_git.store.git.config import BadConfig, set_config
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.store import (
    NotAStore,
    Store,
    accept_config,
    create_store,
    default_path,
    find_bare_around,
    find_git_dir,
    find_store,
    list_changed_settings,
    open_store,
    own_change,
    watch_config,
)

ONE = Oid("1" * 40)


def test_a_new_store_is_an_empty_bare_repository(tmp_path: Path, git: Git) -> None:
    path = tmp_path / "new" / "store.git"
    assert create_store(str(path)).path == str(path)
    assert git("rev-parse", "--is-bare-repository", cwd=path) == "true\n"
    assert git("for-each-ref", cwd=path) == ""
    assert git("fsck", "--strict", cwd=path) == ""
    assert git("symbolic-ref", "HEAD", cwd=path) == "refs/heads/main\n"


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


def test_broken_config_is_refused(tmp_path: Path) -> None:
    create_store(str(tmp_path))
    (tmp_path / "config").write_text("[broken")
    with pytest.raises(BadConfig, match=str(tmp_path / "config")):
        open_store(str(tmp_path))


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


@pytest.mark.parametrize("content", ["", "\0" * 21, "garbage\n", "ref: x\n", "a" * 39])
def test_a_broken_head_is_refused_as_git_refuses_it(content: str, git: Git) -> None:
    store = fresh_store()
    Path(store.path, "HEAD").write_text(content)
    with pytest.raises(subprocess.CalledProcessError, match="128"):
        git("--git-dir", store.path, "rev-parse", cwd=Path(store.path))
    with refuses("broken-head", match="HEAD names no branch", status=5) as caught:
        open_store(store.path)
    subprocess.run(["sh", "-c", (caught.value.hint or "").partition(": ")[2]], check=True)
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


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return the store of a user with a home."""
    opened = create_store(str(tmp_path / "store.git"), environ=os.environ)
    set_config(f"{opened.path}/config", "uwf.agent", "mine")
    return opened


def change(store: Store, name: str, value: str = "x") -> None:
    set_config(f"{store.path}/config", name, value)


@pytest.mark.parametrize(
    ("edit", "names"),
    [
        (lambda path: set_config(path, "uwf.onEvent", "evil"), ["uwf.onevent"]),
        (lambda path: set_config(path, "uwf.agent", "evil"), ["uwf.agent"]),
        (lambda path: remove_config(path, "uwf.agent", {"mine"}), ["uwf.agent"]),
        (lambda path: Path(path).write_text(""), ["uwf.agent"]),
        (lambda path: set_config(path, "remote.x.url", "/evil"), ["remote.x.url"]),
        (lambda path: set_config(path, "include.path", "evil"), ["include.path"]),
        (lambda path: set_config(path, "uwf.claude.model", "opus"), []),
        (lambda path: set_config(path, "commit.gpgSign", "true"), []),
        (lambda path: Path(path).write_text(f"# seen\n{Path(path).read_text()}"), []),
    ],
)
def test_what_something_else_changes_is_told_until_it_is_accepted(
    store: Store, edit: Callable[[str], None], names: list[str]
) -> None:
    watch_config(store)
    edit(f"{store.path}/config")
    watch_config(store)

    assert list_changed_settings(store) == list_changed_settings(store) == names
    assert accept_config(store) == names
    assert list_changed_settings(store) == []


def test_own_changes_are_known_and_hide_no_others(store: Store) -> None:
    watch_config(store)
    change(store, "core.hooksPath")
    with own_change(store):
        change(store, "uwf.onEvent")
        remove_config(f"{store.path}/config", "uwf.agent", {"mine"})

    assert list_changed_settings(store) == ["core.hookspath"]


def test_what_is_known_is_not_in_the_store(store: Store) -> None:
    before = sorted(Path(store.path).rglob("*"))
    watch_config(store)
    assert sorted(Path(store.path).rglob("*")) == before
    watch_config(store._replace(trust_file=None))
    change(store, "uwf.onEvent")
    assert list_changed_settings(store._replace(trust_file=None)) == []


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff"])
def test_damaged_record_is_none(store: Store, content: bytes) -> None:
    assert store.trust_file is not None
    known = Path(store.trust_file).with_name("known-config")
    known.parent.mkdir(parents=True, exist_ok=True)
    known.write_bytes(content)
    change(store, "uwf.onEvent")
    assert list_changed_settings(store) == []


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the home of a user without a store."""
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def project(tmp_path: Path, git: Git) -> Path:
    """Return a repository that says that it is a store."""
    path = tmp_path / "project"
    (path / "deep" / "down").mkdir(parents=True)
    git("init", "--quiet", cwd=path)
    git("config", "uwf.store", "true", cwd=path)
    return path


def found(repo: str | None, cwd: Path, home: Path | None, *, create: bool = False) -> str:
    environ = {} if home is None else {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    return find_store(repo, str(cwd), environ, create=create).path


def test_what_was_named_comes_first(tmp_path: Path, home: Path, project: Path) -> None:
    named = create_store(str(tmp_path / "named.git")).path
    assert found(named, project, home) == named
    assert found("../named.git", project, home) == named
    assert found(".", project / ".git", home) == str(project / ".git")


@pytest.mark.parametrize("below", [".", "deep", "deep/down", ".git", ".git/objects"])
def test_the_enclosing_store_comes_next(project: Path, home: Path, below: str) -> None:
    assert found(None, project / below, home) == str(project / ".git")


def test_a_repository_that_does_not_say_so_is_passed_over(
    project: Path, home: Path, git: Git
) -> None:
    inner = project / "deep" / "down"
    git("init", "--quiet", cwd=inner)
    assert found(None, inner, home) == str(project / ".git")
    git("config", "uwf.store", "false", cwd=project)
    with pytest.raises(NotAStore, match=r"\.uwf/store\.git does not exist yet"):
        found(None, inner, home)


@pytest.mark.parametrize("below", ["vendor/lib", "vendor/lib/objects"])
def test_a_bare_repository_in_a_checkout_is_passed_over(
    project: Path, home: Path, git: Git, below: str
) -> None:
    """Its files can come with any commit, and its config names commands."""
    git("init", "--quiet", "--bare", "vendor/lib", cwd=project)
    git("config", "uwf.store", "true", cwd=project / "vendor" / "lib")

    assert found(None, project / below, home) == str(project / ".git")
    assert find_bare_around(str(project / below)) == str(project / "vendor" / "lib")
    git("config", "uwf.store", "false", cwd=project)
    assert found(None, project / below, home, create=True) == str(home / ".uwf" / "store.git")


def test_nothing_bare_is_around_a_work_tree(project: Path) -> None:
    for below in (".", "deep", ".git", ".git/objects"):
        assert find_bare_around(str(project / below)) is None


@pytest.mark.parametrize("value", ["{0}/mine.git", "~/mine.git", "mine.git"])
def test_the_user_may_name_the_default_store(home: Path, git: Git, value: str) -> None:
    git("config", "--file", home / ".gitconfig", "uwf.repo", value.format(home), cwd=home)

    assert found(None, home, home, create=True) == str(home / "mine.git")
    assert found(None, home, home) == str(home / "mine.git")


def test_a_store_does_not_name_another(project: Path, home: Path, git: Git, tmp_path: Path) -> None:
    git("config", "uwf.repo", tmp_path / "other.git", cwd=project)

    assert found(None, project, home) == str(project / ".git")


def test_the_default_store_is_made_when_it_is_wanted(home: Path) -> None:
    path = str(home / ".uwf" / "store.git")
    with pytest.raises(NotAStore):
        found(None, home, home)
    assert not (home / ".uwf").exists()
    assert found(None, home, home, create=True) == path
    assert found(None, home, home) == default_path({"HOME": str(home)}) == path


def test_a_named_store_is_never_made_by_accident(tmp_path: Path, home: Path) -> None:
    with pytest.raises(NotAStore, match="typo does not exist"):
        found("typo", tmp_path, home, create=True)
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}])
def test_without_a_home_there_is_no_default_store(tmp_path: Path, environ: dict[str, str]) -> None:
    with refuses("no-home", status=2):
        find_store(None, str(tmp_path), environ, create=True)


@pytest.fixture
def somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend to be a user that owns nothing here."""
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)


def test_enclosing_store_of_another_user_is_refused(
    project: Path, home: Path, somebody_else: None
) -> None:
    """Its config says which commands may run as agents."""
    with refuses("foreign-repository", status=1) as caught:
        found(None, project, home)
    assert str(project / ".git") in caught.value.message
    assert "--repo" in str(caught.value.hint)


def test_git_file_of_another_user_is_refused(
    tmp_path: Path, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that all may write, such as /tmp, it would lead into any store of the user."""
    place = tmp_path / "everyone"
    place.mkdir()
    (place / ".git").write_text(f"gitdir: {project}/.git\n")
    lstat = os.lstat

    def lstat_of_another(path: str) -> os.stat_result:
        ours = lstat(path)
        return os.stat_result((*ours[:4], ours.st_uid + (path == f"{place}/.git"), *ours[5:]))

    monkeypatch.setattr(os, "lstat", lstat_of_another)

    assert found(None, project, home) == str(project / ".git")
    with refuses("foreign-repository"):
        found(None, place, home)


def test_enclosing_repository_without_the_setting_is_ignored(
    project: Path, home: Path, git: Git, somebody_else: None
) -> None:
    git("config", "uwf.store", "false", cwd=project)
    assert found(None, project, home, create=True) == str(home / ".uwf" / "store.git")


@pytest.mark.parametrize(
    ("safe", "is_safe"),
    [
        (["*"], True),
        (["elsewhere", "{project}"], True),
        (["{project}/.git"], True),
        (["elsewhere"], False),
        (["*", ""], False),
        (["*", "", "{project}"], True),
    ],
)
@pytest.mark.parametrize("tree", ["project", "linked"])
def test_safe_directory_is_trusted(
    project: Path,
    home: Path,
    git: Git,
    somebody_else: None,
    safe: list[str],
    tree: str,
    *,
    is_safe: bool,
) -> None:
    git("commit", "--quiet", "--allow-empty", "-m", "begin", cwd=project)
    git("worktree", "add", "--quiet", "../linked", cwd=project)
    place = project.with_name(tree)
    for value in safe:
        told = value.format(project=place if value == "{project}" else project)
        git("config", "--file", home / ".gitconfig", "--add", "safe.directory", told, cwd=home)
    if is_safe:
        assert found(None, place, home) == str(project / ".git")
    else:
        with refuses("foreign-repository"):
            found(None, place, home)


# Odd places for a store, and files that mean to mislead.


@pytest.fixture
def work_tree(tmp_path: Path, git: Git) -> Path:
    """Return a work tree with one commit."""
    path = tmp_path / "my project"
    git("init", "--quiet", path, cwd=tmp_path)
    git("commit", "--quiet", "--allow-empty", "-m", "begin", cwd=path)
    return path


def refused(path: Path) -> str:
    """Try to open *path*, and return how it is refused."""
    assert find_git_dir(str(path)) is None
    with pytest.raises(NotAStore) as caught:
        open_store(str(path))
    return caught.value.message


LEADS_NOWHERE = [b"", b"gitdir: ", b"gitdir: .", b"gitdir: missing", b"hello", b"gitdir: \xff\xfe"]


@pytest.mark.parametrize("content", LEADS_NOWHERE, ids=repr)
def test_a_git_file_that_leads_nowhere_is_no_repository(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".git").write_bytes(content)
    assert refused(tmp_path) == f"{tmp_path} is not a git repository"
    assert refused(tmp_path / ".git") == f"{tmp_path}/.git is not a git repository"


@pytest.mark.parametrize("missing", ["HEAD", "objects"])
def test_half_a_repository_is_none(tmp_path: Path, missing: str) -> None:
    create_store(str(tmp_path / "store.git"))
    (tmp_path / "store.git" / missing).rename(tmp_path / "elsewhere")
    assert refused(tmp_path / "store.git").endswith("HEAD is missing") == (missing == "HEAD")


def test_the_hint_for_a_missing_head_makes_it_and_changes_nothing_else(
    work_tree: Path, git: Git
) -> None:
    (work_tree / ".git" / "HEAD").unlink()
    with pytest.raises(NotAStore) as caught:
        open_store(str(work_tree / ".git"))
    subprocess.run(["sh", "-c", str(caught.value.hint).partition(": ")[2]], check=True)
    assert git("rev-parse", "--is-bare-repository", cwd=work_tree) == "false\n"


def test_a_user_cannot_make_a_repository_another_kind(store: Store, tmp_path: Path) -> None:
    environ = {"GIT_CONFIG_GLOBAL": str(tmp_path / "mine"), "GIT_CONFIG_NOSYSTEM": "1"}
    set_config(environ["GIT_CONFIG_GLOBAL"], "extensions.objectFormat", "sha256")
    assert open_store(store.path, environ=environ).path == store.path


def test_a_whole_thread_touches_nothing_of_the_project(
    work_tree: Path, git: Git, clock: Callable[[], int]
) -> None:
    (work_tree / "file").write_text("changed")
    git("add", "file", cwd=work_tree)
    untouched = [work_tree / ".git" / name for name in ("HEAD", "index", "config", "logs/HEAD")]

    def look() -> list[object]:
        told = [git("status", "--porcelain", cwd=work_tree), git("branch", "-av", cwd=work_tree)]
        return [*told, sorted(os.listdir(work_tree)), *[path.read_bytes() for path in untouched]]

    before = look()
    story = Story(open_store(str(work_tree)), clock)
    story.step()
    story.end()
    assert look() == before


@pytest.mark.parametrize("content", ["nowhere\n", "\0\n", "x\0y\n"])
def test_a_folder_with_a_commondir_that_leads_nowhere_is_no_repository(
    tmp_path: Path, content: str
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "commondir").write_text(content)
    assert refused(place)


def test_a_commondir_leads_out_of_no_repository(tmp_path: Path, git: Git) -> None:
    """A file in a checkout must not say which store is used."""
    git("init", "--quiet", "--bare", "mine.git", cwd=tmp_path)
    for place in (tmp_path / "place", tmp_path / "tree" / ".git", tmp_path / "worktrees" / "x"):
        place.mkdir(parents=True)
        (place / "HEAD").write_text("ref: refs/heads/main\n")
        (place / "commondir").write_text(f"{tmp_path}/mine.git\n")
        assert refused(place)
    assert refused(tmp_path / "tree")


def test_a_whole_repository_with_a_commondir_is_refused(tmp_path: Path, git: Git) -> None:
    """git would use the refs and objects of the other one."""
    git("init", "--quiet", "--bare", "mine.git", cwd=tmp_path)
    git("init", "--quiet", "tree", cwd=tmp_path)
    (tmp_path / "tree" / ".git" / "commondir").write_text("../../mine.git\n")

    with refuses("unsupported-repository", match="commondir"):
        open_store(str(tmp_path / "tree"))


def test_packed_refs_of_another_repository_are_refused(store: Store, tmp_path: Path) -> None:
    """As `git-new-workdir` links them: git writes the file behind the link."""
    Path(store.path, "packed-refs").symlink_to(tmp_path / "packed-refs")

    with refuses("unsupported-repository", match="a link as packed-refs"):
        open_store(store.path)


def test_link_to_a_store_means_that_store(tmp_path: Path) -> None:
    (tmp_path / "store.git").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "store.git")
    environ = {"HOME": "/home/me"}
    there = find_user_file(f"{tmp_path}/store.git", environ, "trust")
    assert find_user_file(f"{tmp_path}/link", environ, "trust") == there
    assert str(there).startswith("/home/me/.local/state/uwf/stores/")


@pytest.mark.parametrize("state", ["", "relative/path"])
def test_state_home_that_is_not_absolute_is_ignored(state: str) -> None:
    found = find_user_file("/s.git", {"HOME": "/h", "XDG_STATE_HOME": state}, "trust")
    assert str(found).startswith("/h/.local/state/")


def test_files_lie_in_the_state_home_else_in_that_of_the_account() -> None:
    mine = pwd.getpwuid(os.geteuid()).pw_dir
    for environ, state in [
        ({"HOME": "/h", "XDG_STATE_HOME": "/state"}, "/state"),
        ({}, f"{mine}/.local/state"),
        ({"HOME": "relative"}, f"{mine}/.local/state"),
    ]:
        assert str(find_user_file("/s.git", environ, "trust")).startswith(f"{state}/uwf/stores/")
