"""What the chain of a thread's files has, and what is left out of it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from subprocess import CalledProcessError

import pytest
from commands.worktree.project import (
    PAIR,
    begin_project,
    begin_split,
    children,
    commit_all,
    worktrees,
    writer,
)
from commands.world import Git, World
from refusing import refuses

from uwf_git.commands.admin import set_setting
from uwf_git.commands.turn.branches import begin_branch
from uwf_git.commands.worktree import chain as module
from uwf_git.commands.worktree.chain import Chain, Made, find_chain, read_tip, view_ranges
from uwf_git.commands.worktree.record import (
    SplitOrigin,
    Worktree,
    find_split_origin,
    find_worktree,
    forget_worktrees,
    list_parents,
    list_worktrees,
    place_of,
    write_origin,
    write_worktree,
)
from uwf_git.commands.worktree.worktrees import make_worktree
from uwf_git.errors import StoreFailed
from uwf_git.model.names import ThreadId
from uwf_git.store.git.program import ProgramFailed
from uwf_git.store.store import Store
from uwf_git.store.threads.history import Snapshot

AFTER = "a" * 40


@pytest.fixture
def chain(world: World, git: Git) -> Chain:
    begin_project(world, git)
    return open_chain(world, world.begun())


def open_chain(world: World, thread: ThreadId) -> Chain:
    found = find_chain(world.store, thread, world.caller.environ)
    assert found is not None
    return found


def list_tree(chain: Chain, commit: str) -> list[str]:
    return chain.git.ask("ls-tree", "-r", "--name-only", commit).split("\n")


def left_out(chain: Chain, commit: str) -> Mapping[str, str]:
    _, tip = chain.read_tips(commit)
    assert tip is not None
    return dict(each.split(": ", 1) for each in tip.left_out)


def test_secrets_large_files_and_repositories_inside_are_left_out(
    world: World, git: Git, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LARGEST", 100)
    place = world.place
    (place / ".env").write_text("A=1")
    (place / ".env.example").write_text("A=")
    (place / "large").write_bytes(b"x" * 101)
    (place / "edge").write_bytes(b"x" * 100)
    (place / "keys.txt").write_text("it is s3cret-word, here")
    git("init", "--quiet", "inner", cwd=place)
    (place / "inner" / "file").touch()
    commit_all(place / "inner", git)

    commit = chain.record("now", AFTER, lambda content: b"s3cret-word" in content)

    assert list_tree(chain, commit) == [".env.example", ".gitignore", "edge", "notes", "part/deep"]
    assert left_out(chain, commit) == {
        ".env": "by its name a secret",
        "inner/": "a repository inside",
        "keys.txt": "it has a key of the environment in it",
        "large": "101 bytes",
    }


def test_lines_that_a_person_quoted_are_no_trailers() -> None:
    lines = f"\n\nUwf-Thread: t\nUwf-Head: {AFTER}\n"
    for message, expected in ((lines, (AFTER, True)), (f"{lines}\nso\n", (None, False))):
        tip = read_tip("c", f"tree t\n\nturn{message}")
        assert (tip.head, tip.is_made) == expected


@pytest.mark.parametrize("name", ["é and blank", "new\nline", "-dash", "\udcff"])
def test_any_name_and_kind_of_file_is_recorded(world: World, chain: Chain, name: str) -> None:
    place = world.place
    (place / name).write_bytes(b"\0binary")
    (place / "notes").unlink()
    (place / "notes").symlink_to("nowhere")
    (place / "part" / "deep").unlink()
    (place / "part").rmdir()
    (place / "part").write_text("now a file")
    (place / ".gitignore").chmod(0o755)
    rows = chain.git.ask("ls-tree", "-r", "-z", chain.record("now", AFTER, None)).split("\0")
    found = {row.partition("\t")[2]: row[:6] for row in rows if row}
    assert found == {name: "100644", "notes": "120000", "part": "100644", ".gitignore": "100755"}


def test_what_the_user_likes_to_be_shown_changes_nothing_that_is_read(
    world: World, git: Git, chain: Chain
) -> None:
    git("config", "--global", "core.quotePath", "false", cwd=world.place)
    git("config", "--global", "log.showSignature", "true", cwd=world.place)
    git("config", "--global", "trailer.separators", "=", cwd=world.place)
    signature = "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n\n"
    signed = git("cat-file", "commit", "HEAD", cwd=world.place).replace("\n\n", signature, 1)
    written = git("hash-object", "-t", "commit", "-w", "--stdin", cwd=world.place, stdin=signed)
    head = written.strip()
    git("update-ref", "HEAD", head, cwd=world.place)
    (world.place / "\udcff").touch()
    commit = chain.record("now", AFTER, None)
    assert chain.read_log() == [
        Made(commit, chain.thread, AFTER, head, "now"),
        Made(head, "", "", "", "a person's"),
    ]
    (found,) = view_ranges(world.store, chain.thread, [f"{head}..{commit}"]).values()
    assert found["changed"] == 1


def test_without_a_commit_and_in_a_merge_the_files_are_recorded(world: World, git: Git) -> None:
    git("init", "--quiet", "--initial-branch=main", cwd=world.place)
    (world.place / "notes").write_text("no commit yet\n")
    chain = open_chain(world, world.begun())
    first = chain.record("now", AFTER, None)
    assert chain.git.ask("show", f"{first}:notes") == "no commit yet"

    commit_all(world.place, git)
    for branch in ("left", "right"):
        git("checkout", "--quiet", "-b", branch, "main", cwd=world.place)
        (world.place / "notes").write_text(f"{branch}\n")
        git("commit", "--quiet", "-am", branch, cwd=world.place)
    with pytest.raises(CalledProcessError):
        git("merge", "left", cwd=world.place)
    Path(chain.index).unlink()
    index = (world.place / ".git" / "index").read_bytes()
    commit = chain.record("in a merge", AFTER, None)
    assert "<<<<<<<" in chain.git.ask("show", f"{commit}:notes")
    assert (world.place / ".git" / "index").read_bytes() == index


def test_beside_a_bare_repository_no_files_are_recorded(world: World, git: Git) -> None:
    git("init", "--quiet", "--bare", ".bare", cwd=world.place)
    (world.place / ".git").write_text("gitdir: .bare\n")

    assert find_chain(world.store, world.begun(), world.caller.environ) is None


def test_no_index_is_written_where_a_link_leads(world: World, chain: Chain) -> None:
    mine = world.place.parent / "mine"
    mine.write_text("mine")
    Path(chain.index).parent.mkdir(exist_ok=True)
    Path(chain.index).symlink_to(mine)

    chain.record("now", AFTER, None)

    assert mine.read_text() == "mine"


def test_the_bound_of_a_thread_is_kept(world: World, git: Git, chain: Chain) -> None:
    world.configure("uwf.maxRecordedFiles", "1k")
    bounded = open_chain(world, chain.thread)
    (world.place / "one").write_bytes(b"1" * 600)
    bounded.record("now", AFTER, None)
    (world.place / "two").write_bytes(b"2" * 600)
    bound = r"^1200 bytes are more than uwf\.maxRecordedFiles allows for a thread$"
    with pytest.raises(StoreFailed, match=bound):
        bounded.record("now", AFTER, None)
    # What was recorded is not counted again, also where git is told to look at other files.
    (world.place / "two").write_bytes(b"2" * 200)
    bounded.record("now", AFTER, None)
    git("update-index", "--assume-unchanged", "notes", cwd=world.place)
    (world.place / "three").write_bytes(b"3" * 200)
    bounded.record("now", AFTER, None)


def test_ids_of_more_than_40_digits_are_refused(world: World, git: Git) -> None:
    git("init", "--quiet", "--object-format=sha256", cwd=world.place)
    (world.place / "notes").touch()
    commit_all(world.place, git)
    with pytest.raises(ProgramFailed, match="40 digits"):
        open_chain(world, world.begun()).record("now", AFTER, None)


def test_staged_secrets_links_to_keys_and_pipes_are_left_out(
    world: World, git: Git, chain: Chain
) -> None:
    place = world.place
    (place / ".env").write_text("A=1")
    (place / "conf").write_text("url")
    git("add", "conf", cwd=place)
    git("commit", "--quiet", "-m", "conf", cwd=place)
    (place / "conf").write_text("s3cret-word")
    git("add", "--force", ".env", "conf", cwd=place)
    (place / "link").symlink_to("s3cret-word")
    (place / "named-s3cret-word").touch()
    (place / "notes").unlink()
    os.mkfifo(place / "notes")
    commit = chain.record("now", AFTER, lambda content: b"s3cret-word" in content)
    assert left_out(chain, commit).keys() >= {".env", "conf", "link", "notes"}
    assert chain.git.ask("show", f"{commit}:conf") == "url"
    assert "s3cret" not in chain.git.ask("log", "-p", "--stat", commit)
    assert ".env" not in list_tree(chain, commit)


def test_a_file_that_had_a_key_stays_out_where_the_key_is_not_known(
    world: World, chain: Chain
) -> None:
    (world.place / "conf").write_text("s3cret-word")
    chain.record("now", AFTER, lambda content: b"s3cret-word" in content)
    (world.place / "other").touch()
    commit = chain.record("later", AFTER, None)
    assert "other" in list_tree(chain, commit)
    assert "conf" not in list_tree(chain, commit)


@pytest.mark.parametrize("is_own", [True, False])
def test_a_spoilt_index_stops_no_recording(world: World, chain: Chain, *, is_own: bool) -> None:
    chain.record("now", AFTER, None)
    Path(chain.index if is_own else world.place / ".git" / "index").write_bytes(b"garbage")
    (world.place / "new").touch()
    assert "new" in list_tree(chain, chain.record("again", AFTER, None))


def test_an_index_that_is_made_anew_has_no_file_that_had_a_key(
    world: World, git: Git, chain: Chain
) -> None:
    (world.place / "conf").write_text("s3cret-word")
    chain.record("now", AFTER, lambda content: b"s3cret-word" in content)
    git("add", "conf", cwd=world.place)
    Path(chain.index).write_bytes(b"garbage")
    assert "conf" not in list_tree(chain, chain.record("later", AFTER, None))


def test_a_head_that_git_has_pruned_stands_for_no_files(
    world: World, git: Git, chain: Chain
) -> None:
    assert chain.record("now", AFTER, None) == chain.find_begun()
    git("commit", "--quiet", "--amend", "-m", "other", cwd=world.place)
    git("reflog", "expire", "--expire=now", "--all", cwd=world.place)
    git("prune", "--expire=now", cwd=world.place)
    assert chain.find_begun() is None


def test_a_ref_that_leads_to_a_branch_of_the_user_leaves_that(
    world: World, git: Git, chain: Chain
) -> None:
    head = git("rev-parse", "main", cwd=world.place)
    git("symbolic-ref", chain.ref, "refs/heads/main", cwd=world.place)
    (world.place / "new").touch()
    chain.record("now", AFTER, None)
    assert git("rev-parse", "main", cwd=world.place) == head


def test_who_has_git_show_no_untracked_files_has_none_recorded(
    world: World, git: Git, chain: Chain
) -> None:
    git("config", "status.showUntrackedFiles", "no", cwd=world.place)
    (world.place / "untracked").touch()
    (world.place / "notes").write_text("changed\n")
    again = open_chain(world, chain.thread)
    commit = again.record("now", AFTER, None)
    assert list_tree(again, commit) == [".gitignore", "notes", "part/deep"]
    assert again.git.ask("show", f"{commit}:notes") == "changed"
    git("add", "untracked", cwd=world.place)
    assert "untracked" in list_tree(again, again.record("tracked", AFTER, None))


# What is tracked is asked of the user's index each time.


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_file_that_is_ignored_and_tracked_no_more_is_not_recorded(
    world: World, git: Git, chain: Chain, *, is_committed: bool
) -> None:
    place = world.place
    (place / ".env").write_text("TOKEN=")
    (place / "settings").write_text("none")
    commit_all(place, git)
    (place / "new").touch()
    assert ".env" in list_tree(chain, chain.record("now", AFTER, None))
    git("rm", "--quiet", "--cached", ".env", "settings", cwd=place)
    (place / ".git" / "info" / "exclude").write_text("settings\nnew\n")
    if is_committed:
        git("commit", "--quiet", "-m", "Stop tracking them", cwd=place)
    for name in (".env", "settings", "new"):
        (place / name).write_text("TOKEN=sk-live-1")
    commit = chain.record("later", AFTER, None)
    assert list_tree(chain, commit) == [".gitignore", "notes", "part/deep"]
    told = dict.fromkeys(("settings", "new"), "tracked no more, and git does not list it")
    assert left_out(chain, commit) == {".env": "by its name a secret"} | told
    assert "sk-live-1" not in chain.git.ask("log", "-p", commit)
    assert chain.record("the same", AFTER, None) == commit


def test_what_became_tracked_is_recorded(world: World, git: Git, chain: Chain) -> None:
    place = world.place
    (place / ".git" / "info" / "exclude").write_text("built\n.env*\n")
    chain.record("now", AFTER, None)
    for name in ("built", ".env", ".env.key", "gone"):
        (place / name).write_text("tracked though ignored\n")
    (place / "behind").mkdir()
    (place / "behind" / "file").touch()
    git("add", "--force", "built", ".env", "gone", "behind/file", cwd=place)
    git("commit", "--quiet", "-m", "Track them", cwd=place)
    git("add", "--force", ".env.key", cwd=place)
    (place / "gone").unlink()
    (place / "behind").rename(place.parent / "elsewhere")
    (place / "behind").symlink_to(place.parent / "elsewhere")
    commit = chain.record("later", AFTER, None)
    names = [".env", ".gitignore", "behind", "built", "notes", "part/deep"]
    assert list_tree(chain, commit) == names
    assert left_out(chain, commit) == {".env.key": "by its name a secret"}


def test_a_sparse_checkout_that_became_narrower_removes_nothing(
    world: World, git: Git, chain: Chain
) -> None:
    (world.place / "new").touch()
    first = chain.record("now", AFTER, None)
    git("sparse-checkout", "set", "--no-cone", "/*", "!/part/", cwd=world.place)
    assert not (world.place / "part").exists()
    assert chain.record("narrow", AFTER, None) == first
    git("sparse-checkout", "disable", cwd=world.place)
    (world.place / "part" / "deep").write_text("changed")
    commit = chain.record("wide", AFTER, None)
    assert chain.git.ask("show", f"{commit}:part/deep") == "changed"


def test_a_file_at_which_git_is_told_not_to_look_is_as_the_index_has_it(
    world: World, git: Git, chain: Chain
) -> None:
    place = world.place
    (place / "notes").write_text("recorded\n")
    (place / "part" / "deep").write_text("recorded\n")
    chain.record("now", AFTER, None)
    (place / ".env").touch()
    git("add", ".env", cwd=place)
    git("update-index", "--assume-unchanged", "notes", ".env", cwd=place)
    commit = chain.record("told", AFTER, None)
    assert chain.git.ask("show", f"{commit}:notes", f"{commit}:part/deep") == "begun\nrecorded"
    assert left_out(chain, commit) == {".env": "by its name a secret"}
    assert ".env" not in list_tree(chain, commit)
    assert chain.record("the same", AFTER, None) == commit


def test_a_submodule_that_was_added_is_recorded(world: World, git: Git, chain: Chain) -> None:
    chain.record("now", AFTER, None)
    git("init", "--quiet", "lib", cwd=world.place)
    git("commit", "--quiet", "--allow-empty", "-m", "one", cwd=world.place / "lib")
    git("submodule", "--quiet", "add", "./lib", cwd=world.place)
    commit = chain.record("later", AFTER, None)
    assert "lib" in list_tree(chain, commit)
    assert left_out(chain, commit) == {}


def test_after_git_has_pruned_the_record_it_begins_anew(
    world: World, git: Git, chain: Chain
) -> None:
    (world.place / "new").write_text("new\n")
    chain.record("now", AFTER, None)
    git("update-ref", "-d", chain.ref, cwd=world.place)
    git("prune", "--expire=now", cwd=world.place)
    (world.place / "other").touch()
    assert {"new", "other"} <= {*list_tree(chain, chain.record("again", AFTER, None))}


def test_a_bound_that_is_no_size_is_refused(world: World) -> None:
    with refuses("bad-files-setting"):
        set_setting(world.store, "uwf.maxRecordedFiles", "much", cwd=str(world.place))


def test_a_branch_that_ends_leaves_the_branch_of_the_user_that_its_ref_leads_to(
    world: World, git: Git
) -> None:
    thread, (one, _) = begin_split(world, git)
    head = git("rev-parse", "main", cwd=world.place)
    git("symbolic-ref", f"refs/uwf/work/{one}", "refs/heads/main", cwd=world.place)
    world.configure("uwf.recordFiles", "false")
    world.step(thread, writer())
    world.kill(one, reason="enough")
    assert git("rev-parse", "main", cwd=world.place) == head
    assert "one.new" in git("ls-tree", "--name-only", f"refs/uwf/work/{one}", cwd=world.place)


def test_no_filter_that_an_agent_planted_runs(world: World, git: Git, chain: Chain) -> None:
    ran = world.place.parent / "ran"
    git("config", "filter.evil.clean", f"touch {ran}; cat", cwd=world.place)
    (world.place / ".gitattributes").write_text("* filter=evil\n")
    (world.place / "new").write_text("x")
    chain.record("now", AFTER, None)
    assert not ran.exists()


# What is recorded of worktrees: what was written is read, for each thread by itself.

PARENT = ThreadId("01J00000000000000000000001")
CHILD = ThreadId("01J00000000000000000000002")
# A path may hold any byte but 0.
ODD = "/a b\n\udcff/é"


def begun(store: Store) -> Worktree:
    path = place_of(store, CHILD) or ""
    return Worktree(CHILD, PARENT, ODD, "/repository/.git", "0" * 40, path, f"{path}/part")


@pytest.fixture(name="store")
def at_home(store: Store, tmp_path: Path) -> Store:
    """Return a store whose user has a home directory."""
    return store._replace(trust_file=str(tmp_path / "home" / "trust"))


def test_a_record_is_read_as_it_was_written(store: Store) -> None:
    assert find_worktree(store, PARENT, CHILD) is None
    assert list_worktrees(store, PARENT) == []
    whole = begun(store)._replace(git_dir="/repository/.git/worktrees/x", commit="1" * 40)
    write_worktree(store, begun(store))
    write_worktree(store, whole)

    assert find_worktree(store, PARENT, CHILD) == whole
    assert list_worktrees(store, PARENT) == [whole]
    # A field that older versions of uwf do not know is written if there is something in it.
    record = Path(store.path, "uwf-worktrees", PARENT, CHILD)
    assert "left_out" not in record.read_text()
    write_worktree(store, told := whole._replace(left_out=(".env: by its name a secret",)))
    assert find_worktree(store, PARENT, CHILD) == told
    assert list(list_parents(store)) == [PARENT]


def test_an_origin_is_that_of_one_split(store: Store) -> None:
    origin = SplitOrigin("0.1/1", ODD, "/repository/.git", "part/", "0" * 40)
    write_origin(store, PARENT, origin)

    assert find_split_origin(store, PARENT, "0.1/1") == origin
    assert find_split_origin(store, PARENT, "0.2/1") is None
    assert find_split_origin(store, CHILD, "0.1/1") is None


def test_what_has_a_worktree_is_not_forgotten(store: Store) -> None:
    write_worktree(store, begun(store))
    forget_worktrees(store, PARENT)
    assert list_worktrees(store, PARENT) == [begun(store)]

    write_worktree(store, begun(store)._replace(is_removed=True))
    forget_worktrees(store, PARENT)
    assert list(list_parents(store)) == []
    forget_worktrees(store, PARENT)


def test_what_others_wrote_in_place_of_a_record_is_none(store: Store, tmp_path: Path) -> None:
    write_worktree(store, begun(store))
    folder = Path(store.path, "uwf-worktrees", PARENT)
    whole = json.loads((folder / CHILD).read_text())
    wrong: list[tuple[str, object]] = [
        *[("thread", "../../x"), ("git_dir", 0), ("commit", []), ("left_out", [0])],
        *[("inner", 1), ("inner", [["x", "refs", "0", None]])],
    ]
    for found in ("{", "[]", "{}", *(json.dumps(whole | {name: to}) for name, to in wrong)):
        (folder / CHILD).write_text(found)
        assert list_worktrees(store, PARENT) == []
    origin = SplitOrigin("0", "/", "/", "", "1")
    for text in ("{", json.dumps(origin._asdict() | {"at": []})):
        (folder / "origin").write_text(text)
        assert find_split_origin(store, PARENT) is None
    write_origin(store, PARENT, origin)
    assert find_split_origin(store, PARENT, "0") == origin
    (folder / CHILD).unlink()
    secret = tmp_path / "secret"
    secret.write_text(json.dumps(whole))
    (folder / CHILD).symlink_to(secret)
    assert list_worktrees(store, PARENT) == []

    forget_worktrees(store, PARENT)
    folder.symlink_to(tmp_path)

    assert list(list_parents(store)) == []
    with refuses("linked-folder"):
        forget_worktrees(store, PARENT)
    assert secret.exists()


# Worktrees of branches are made once, whole, at the commit of the split.


def begin(world: World, git: Git, *settings: str) -> Snapshot:
    begin_project(world, git)
    if settings:
        git(*settings, cwd=world.place)
    tip = world.snapshot(world.stepped(source=PAIR))
    begin_branch(world.store, tip, 0)
    return world.snapshot(children(tip)[0])


def test_half_of_a_worktree_is_made_anew(world: World, git: Git) -> None:
    branch = begin(world, git)
    environ, source = world.caller.environ, str(world.place)
    made = make_worktree(world.store, environ, branch, source=source)
    # As a process leaves it that was killed while git made it, locked.
    write_worktree(world.store, made._replace(git_dir=""))
    git("worktree", "lock", "--reason", "initializing", made.path, cwd=world.place)
    Path(made.workdir, "notes").unlink()

    assert make_worktree(world.store, environ, branch, source=source) == made
    assert Path(made.workdir, "notes").read_text() == "begun\n"
    assert worktrees(world, git) == [made.path]


def test_a_user_without_a_home_is_told(world: World, git: Git) -> None:
    branch = begin(world, git)
    homeless = world.store._replace(trust_file=None)
    with refuses("no-place-for-worktrees", match="no home directory"):
        make_worktree(homeless, world.caller.environ, branch, source=str(world.place))


def test_a_worktree_has_the_files_that_the_project_has(world: World, git: Git) -> None:
    branch = begin(world, git, "sparse-checkout", "set", "nothing")
    made = make_worktree(world.store, world.caller.environ, branch, source=str(world.place))

    assert sorted(os.listdir(made.path)) == [".git", ".gitignore", "notes"]
    assert git("status", "--porcelain", cwd=made.path) == ""
    assert git("sparse-checkout", "list", cwd=made.path) == "nothing\n"
