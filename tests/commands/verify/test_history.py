"""The files of a store that no thread leads to; more by chance in test_damaged_stores.py."""

import hashlib
import os
from pathlib import Path

import pytest
from cas_nodes import put_person
from commands.flows import copy_commit, put, split_files, tell
from commands.forging import commits_of, forge, says, tip_of
from commands.step.test_ending import edits
from commands.worktree.project import PAIR, begin_project
from commands.world import Git, World
from dulwich.objects import Blob, ObjectID
from fresh_store import fresh_store
from git_settings import remove_config
from store.small_packs import loose_file, lose, write_loose
from store.story import THREAD, Story

from uwf_git.commands.admin import init_shared
from uwf_git.commands.remote.reconcile import Arrival, check_arrivals, judge_arrivals
from uwf_git.commands.start import ForkRequest, StartRequest, fork_thread
from uwf_git.commands.verify.history import (
    check_files,
    find_hub_gap,
    heads_of_refs,
    heads_of_store,
    list_beginnings,
)
from uwf_git.commands.verify.verify import Target, check_ranges, find_targets, verify
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.lookup import NODES_REF
from uwf_git.store.refs import Refs
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, find_head, list_threads
from uwf_git.store.threads.history import KEPT, preserve_commit
from uwf_git.store.workflows import WORKFLOWS

REF = ACTIVE + THREAD
OTHER = "01J7K9M2XNPQR5VWBCDF8G3H4V"


@pytest.fixture
def oids(store: Store) -> list[Oid]:
    """Return the commits of a thread of four steps, the oldest first."""
    story = Story(store, iter(range(10**12, 10**13, 1000)).__next__)
    for text in "abcd":
        story.step(text=text)
    return forge(store, REF, {})


A = "a" * 40


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(content)


FILES = {
    "HEAD": (b"ref: refs/threads/x\n", "HEAD names no branch and no commit"),
    "packed-refs": (b"", "packed-refs is empty"),
    "refs/heads/main": (b"", "ref refs/heads/main does not hold an object id"),
    "refs/uwf/remotes/o/threads/x": (A.encode(), f"points at {A}, which is missing"),
    "objects/info/commit-graph": (b"garbage", "objects/info/commit-graph does not end with"),
}


@pytest.mark.parametrize("name", FILES)
def test_file_that_git_rejects_is_reported_if_the_whole_store_is_checked(
    name: str, world: World
) -> None:
    thread = world.begun()
    content, told = FILES[name]

    write(Path(world.store.path, name), content)

    (found,) = verify(world.store, []).troubles
    assert told in found.message
    assert found.hint
    assert verify(world.store, [thread]).troubles == ()


def test_object_that_nothing_needs_is_reported(world: World) -> None:
    blob = Blob.from_string(b"nothing needs it")
    write_loose(world.store, [blob])
    path = loose_file(world.store, blob.id)

    write(path, path.read_bytes() + b"more")

    (found,) = check_files(world.store, (), [])
    assert "has garbage behind the object" in found.message


def test_older_shared_store_is_told_with_what_mends_it(tmp_path: Path) -> None:
    path = init_shared("a hub.git", str(tmp_path), os.environ, python="").store.path
    assert find_hub_gap(path) is None
    remove_config(f"{path}/config", "receive.shallowUpdate", ["false"])

    found = find_hub_gap(path)

    assert found is not None
    assert "it does not set receive.shallowUpdate" in found.message
    assert found.hint == f"its owner mends it: `uwf init --shared '{path}'`"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("info/grafts", "`GIT_GRAFT_FILE=/dev/null git log` "),
        ("shallow", "`git fetch --unshallow REMOTE` "),
        (f"refs/replace/{'a' * 40}", "`git --no-replace-objects log` "),
    ],
)
def test_what_lets_git_show_other_commits_is_noted(world: World, name: str, advice: str) -> None:
    tip = world.tip(world.begun())
    path = Path(world.store.path, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{tip}\n")

    (note,) = verify(world.store, []).notes

    assert note.message.endswith(f"because of {name}")
    assert note.hint.startswith(advice)


@pytest.mark.parametrize(
    ("command", "option", "name"),
    [
        ("commit-graph", "--reachable", "info/commit-graph"),
        ("multi-pack-index", "--no-progress", "pack/multi-pack-index"),
    ],
)
def test_what_git_reads_in_place_of_objects_agrees_with_them(
    world: World, git: Git, command: str, option: str, name: str
) -> None:
    tip = bytes.fromhex(world.tip(world.begun()))
    git("repack", "-adq", cwd=world.store.path)
    git(command, "write", option, cwd=world.store.path)
    world.reopen()
    assert verify(world.store, [])[1:3] == ((), ())
    path = Path(world.store.path, "objects", name)
    lie = path.read_bytes()[:-20].replace(tip, tip[:-1] + bytes([tip[-1] ^ 1]))
    path.unlink()
    path.write_bytes(lie + hashlib.sha1(lie, usedforsecurity=False).digest())

    (found,) = verify(world.store, []).troubles

    assert found.message.startswith(f"git's {command} differs from the objects: ")
    for cut in ("shallow", "info/grafts"):
        write(Path(world.store.path, cut), f"{tip.hex()}\n".encode())
        # git reads no commit-graph then.
        assert len(verify(world.store, []).troubles) == (command != "commit-graph")
        Path(world.store.path, cut).unlink()
    odd = Path(world.store.path, "odd")
    odd.write_text("[core]\nabbrev = odd\n")
    environ = {**world.store.environ, "GIT_CONFIG_GLOBAL": str(odd)}
    ran = verify(world.store._replace(environ=environ), [])
    assert (ran.troubles, command in ran.notes[0].hint) == ((), True)
    (note,) = verify(world.store._replace(environ={"PATH": "/none"}), []).notes
    assert note.message.endswith(f"because of objects/{name}")
    assert note.hint.startswith("put git on the PATH")


# What threads share with those that are here is not read again, and nothing else is believed.


def arrival(world: World, thread: ThreadId) -> Arrival:
    head = find_head(world.store, thread)
    assert head is not None
    return Arrival(thread, None, head.commit, archived=head.archived)


def empty_refs() -> Refs:
    return fresh_store().refs


def told(world: World, arrivals: list[Arrival], refs: Refs) -> list[str]:
    return [each.message for each in check_arrivals(world.store._replace(refs=refs), arrivals)]


def test_what_is_in_the_history_of_a_thread_here_is_known(world: World) -> None:
    thread = world.stepped()
    first = world.snapshot(thread)
    world.step(thread)
    heads = heads_of_store(world.store)

    assert heads.has(first.commit.oid)
    assert heads.has(first.commit.parents[0])
    assert heads.find(world.new_id()) is None
    other = world.store._replace(refs=empty_refs())
    assert not heads_of_store(other).has(first.commit.oid)
    assert heads_of_store(other, {thread: first.commit.oid}).has(first.commit.parents[0])


def test_a_commit_that_names_a_thread_here_is_not_believed(world: World) -> None:
    """Only what its ref leads back to was checked."""
    forged = copy_commit(world.store, world.tip(world.stepped()))
    says("Uwf-Depth: 1", "Uwf-Depth: 2")(forged)

    assert not heads_of_store(world.store).has(put(world.store, forged))


def test_a_damaged_ref_is_no_thread_here(world: World) -> None:
    thread = world.begun()
    with open(f"{world.store.path}/refs/threads/{thread}", "w") as file:
        file.write("nonsense")

    assert heads_of_store(world.store).find(thread) is None


def test_a_branch_of_a_forged_thread_is_refused_unless_that_is_here(world: World) -> None:
    at = split_files(world, 2)
    child = at.children[0]
    tip = at.tip
    before = copy_commit(world.store, tip.commit.parents[0])
    says("Uwf-Depth: 1", "Uwf-Depth: 2")(before)
    split = copy_commit(world.store, tip.commit.oid)
    split.parents = [ObjectID(put(world.store, before).encode())]
    forged = put(world.store, split)
    start = copy_commit(world.store, world.tip(child))
    start.parents = [ObjectID(forged.encode())]
    made = put(world.store, start)

    assert told(world, [Arrival(child, None, made, archived=False)], world.store.refs)
    assert tell(world.store, child, made)


def test_forks_and_branches_begin_where_the_others_are(world: World) -> None:
    at = split_files(world, 3)
    fork = world.new_id()
    fork_thread(world.store, world.caller, ForkRequest(at.thread), thread=fork)
    here = at.tip.commit.oid
    heads = heads_of_refs(world.store.objects, {f"refs/threads/{at.thread}": here})
    tips = [world.tip(each) for each in (fork, *at.children)]

    assert list_beginnings(world.store.objects, tips, set(), heads) == {here}
    nobody = heads_of_refs(world.store.objects, {})
    assert list_beginnings(world.store.objects, tips, set(), nobody) == set()
    assert told(world, [arrival(world, fork)], empty_refs()) == []


def test_many_branches_are_checked_in_several_runs(world: World) -> None:
    """The thread passes with the first of them."""
    at = split_files(world, 101)
    arrivals = [arrival(world, each) for each in (at.thread, *at.children)]

    assert judge_arrivals(world.store._replace(refs=empty_refs()), arrivals).passed == set(arrivals)
    assert told(world, arrivals[100:], world.store.refs) == []


# `uwf verify --files` checks the commits of files that steps name, where the project is.


@pytest.fixture
def thread(world: World, git: Git) -> ThreadId:
    begin_project(world, git)
    thread = world.stepped(edits(lambda place: (place / "new").write_text("one")))
    world.step(thread, edits(lambda place: (place / "new").write_text("two")))
    return thread


def found(world: World) -> list[tuple[bool, str]]:
    checked = check_ranges(world.store, find_targets(world.store, []), cwd=world.caller.cwd)
    return [(is_lost, finding.message) for is_lost, finding in checked]


def test_a_lost_commit_and_one_of_another_turn_are_problems(
    world: World, git: Git, thread: ThreadId
) -> None:
    ref = f"refs/uwf/work/{thread}"
    whole = git("rev-parse", ref, cwd=world.place).strip()
    git("update-ref", ref, f"{ref}^", cwd=world.place)
    [(is_lost, message)] = found(world)
    assert is_lost
    assert "not both there" in message
    # The same tree, said to be of another turn.
    words = ("commit-tree", "-p", f"{ref}", "-m", "forged", f"{whole}^{{tree}}")
    git("update-ref", ref, git(*words, cwd=world.place).strip(), cwd=world.place)
    assert [is_lost for is_lost, _ in found(world)] == [True]


def test_what_another_turn_changed_is_a_problem_and_a_range_left_out_a_note(
    world: World, git: Git, thread: ThreadId
) -> None:
    told = git("rev-parse", "HEAD", f"refs/uwf/work/{thread}^", cwd=world.place)
    begun, middle = told.split()
    ref = ACTIVE + thread
    forge(world.store, ref, {-1: says(f"Uwf-Files: {middle}", f"Uwf-Files: {begun}")})
    [(is_lost, message)] = found(world)
    assert (is_lost, message.endswith(f"but {middle} is of another turn")) == (True, True)
    whole = git("rev-parse", f"refs/uwf/work/{thread}", cwd=world.place).strip()
    forge(world.store, ref, {-1: says(f"Uwf-Files: {begun}..{whole}\n", "")})
    [(is_lost, message)] = found(world)
    assert (is_lost, message.endswith(f"its turn changed some: {whole}")) == (False, True)


def test_a_range_left_out_is_noted_though_no_step_names_files(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.stepped(edits(lambda place: (place / "new").touch()))
    refs = ("HEAD", f"refs/uwf/work/{thread}")
    begun, whole = git("rev-parse", *refs, cwd=world.place).split()
    forge(world.store, ACTIVE + thread, {-1: says(f"Uwf-Files: {begun}..{whole}\n", "")})
    [(is_lost, message)] = found(world)
    assert (is_lost, message.endswith(f"its turn changed some: {whole}")) == (False, True)


def test_files_that_a_fork_shares_are_checked_once(
    world: World, git: Git, thread: ThreadId
) -> None:
    fork = world.fork(thread, "1")
    assert found(world) == []
    for each in (thread, f"{fork}-shared"):
        git("update-ref", "-d", f"refs/uwf/work/{each}", cwd=world.place)
    world.step(fork, edits(lambda place: (place / "new").write_text("three")))
    world.step(thread, edits(lambda place: (place / "new").write_text("four")))
    assert [is_lost for is_lost, _ in found(world)] == [True, True]
    world.kill(thread)
    world.remove(thread)
    [(is_lost, message)] = found(world)
    assert (is_lost, "not both there" in message) == (True, True)


def test_files_are_found_where_a_thread_began_in_a_work_tree_that_is_gone(
    world: World, git: Git, tmp_path: Path
) -> None:
    begin_project(world, git)
    git("worktree", "add", "--quiet", str(tmp_path / "task"), cwd=world.place)
    thread = world.begin(
        StartRequest(world.put().workflow, "Do it.", ("nobody",), workdir=str(tmp_path / "task"))
    )
    world.step(thread, edits(lambda place: (place / "new").touch()))
    git("worktree", "remove", "--force", str(tmp_path / "task"), cwd=world.place)
    assert found(world) == []
    git("update-ref", f"refs/uwf/work/{thread}", "HEAD", cwd=world.place)
    assert [is_lost for is_lost, _ in found(world)] == [True]


def test_a_project_that_is_not_here_is_a_note(world: World, thread: ThreadId) -> None:
    os.rename(world.place / ".git", Path(world.place, "gone"))
    [(is_lost, message)] = found(world)
    assert not is_lost
    assert "not here" in message


def test_files_of_branches_are_checked_with_the_thread_that_joined_them(
    world: World, git: Git
) -> None:
    begin_project(world, git)
    thread = world.begun(PAIR)
    numbers = iter("abcdefgh")
    world.finish(thread, edits(lambda place: (place / next(numbers)).touch()))
    assert found(world) == []
    branch = next(each for each in list_threads(world.store, archived=True) if each != thread)
    git("update-ref", f"refs/uwf/work/{branch}", "HEAD", cwd=world.place)

    for checked in (thread, branch):
        told = list(
            check_ranges(world.store, find_targets(world.store, [checked]), cwd=world.caller.cwd)
        )
        assert told
        assert all(is_lost and branch in each.message for is_lost, each in told)


def test_a_history_that_breaks_off_is_checked_as_far_as_it_is_there(
    world: World, thread: ThreadId
) -> None:
    begun, _one, _two = commits_of(world.store, tip_of(world.store, ACTIVE + thread))
    lose(world.store, begun.id)
    assert found(world) == []


@pytest.fixture
def threads(world: World) -> list[ThreadId]:
    """Return an archived thread and an active one, which has a kept commit; and more beside."""
    put_person(world.store, name="Ada")
    ended, going = world.begun(), world.start()
    world.kill(ended)
    preserve_commit(world.store, going, tip_of(world.store, ACTIVE + going))
    return [ended, going]


def refs_of(world: World, *texts: str) -> list[str]:
    targets = find_targets(world.store, list(texts))
    assert all(target.tip == tip_of(world.store, target.ref) for target in targets)
    return [target.ref for target in targets]


def test_each_way_to_name_something(world: World, threads: list[ThreadId]) -> None:
    ended, going = threads
    kept = f"{KEPT}{going}/{tip_of(world.store, ACTIVE + going)}"

    assert refs_of(world, ended) == [ARCHIVE + ended]
    assert refs_of(world, going.lower()) == [ACTIVE + going, kept]
    assert refs_of(world, "demo") == [f"{WORKFLOWS}demo"]
    for ref in (f"{WORKFLOWS}demo", NODES_REF, ARCHIVE + ended, ACTIVE + going, kept):
        assert refs_of(world, ref) == [ref]
    assert refs_of(world, "demo", "demo", going, ACTIVE + going) == [
        f"{WORKFLOWS}demo",
        ACTIVE + going,
        kept,
    ]


def test_ref_that_holds_no_object_id_is_a_target_without_one(
    world: World, threads: list[ThreadId]
) -> None:
    Path(world.store.path, WORKFLOWS, "demo").write_text("junk\n", encoding="utf-8")

    target = Target("workflow", f"{WORKFLOWS}demo", "demo", None)
    assert find_targets(world.store, ["demo"]) == [target]
    assert target in find_targets(world.store, [])
