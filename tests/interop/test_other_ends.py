"""Sound ends of branches that are not those that a hub knows: who came first has come first."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from fresh_store import fresh_store
from interop.honest_flows import Told, git, other, play, refs_of, run_until, tell

from uwf_git.commands.control.answer import kill_thread, patch_thread
from uwf_git.commands.receive import check_received
from uwf_git.commands.step.step_thread import list_leaves
from uwf_git.model.names import Oid
from uwf_git.store.git.hook_files import RefUpdate
from uwf_git.store.store import Store, open_store


@dataclass(frozen=True)
class Ends:
    """A repository with two ways in which one thread went on, and what to push of it."""

    path: Path
    refs: dict[str, tuple[str, str]]
    """Refs and their commits, by a word for both."""


def finish(told: Told, place: Path, how: str) -> Told:
    """Take the thread from where it had split to its end, in a store of its own."""
    place.mkdir()
    made = told.copy(place, told.begun)
    world, first = made.world, made.branches[0]
    if how == "killed":
        kill_thread(world.store, world.caller, first, reason="not mine")
    player = play if how == "ours" else other
    run_until(world, made.thread, player, "ready")
    joined = refs_of(world.store)[f"refs/threads/{made.thread}"]
    run_until(world, made.thread, player, "completed")
    return Told(made.name, world, made.thread, made.twin, {}, {"joined": joined})


def make_ends(told: Told, place: Path, how: str) -> Ends:
    """Let two finish the thread; the second one by other answers, or as *how* says."""
    path = place / "both.git"
    git("init", "--quiet", "--bare", str(path), cwd=place)
    first, thread = told.branches[0], told.thread
    active, archive = f"refs/threads/{first}", f"refs/archive/{first}"
    trunk = f"refs/threads/{thread}"
    refs: dict[str, tuple[str, str]] = {
        "split": (trunk, told.begun[trunk]),
        "begun": (active, told.begun[active]),
    }
    for name, way in (("x", "ours"), ("y", how)):
        made = finish(told, place / name, way)
        git("fetch", "-q", made.world.store.path, f"+refs/*:refs/{name}/*", cwd=path)
        ended = refs_of(made.world.store)
        refs[name] = (archive, ended[archive])
        refs[f"{name}-"] = (active, git("rev-parse", f"{ended[archive]}^", cwd=path).strip())
        refs[f"t{name}"] = (trunk, made.joined["joined"])
        refs[f"t{name}."] = (f"refs/archive/{thread}", ended[f"refs/archive/{thread}"])
        inner = git("rev-list", "--min-parents=2", "-1", ended[archive], cwd=path).strip()
        if inner:
            end = git("rev-parse", f"{inner}^2", cwd=path).strip()
            ref = next(ref for ref, oid in ended.items() if oid == end)
            refs[f"{name}{name}"] = (ref, Oid(end))
    return Ends(path, refs)


def add_orphan(told: Told, place: Path, ends: Ends) -> None:
    """Add a branch of the thread as it would be if it had been patched before it split."""
    trunk = f"refs/threads/{told.thread}"
    place.mkdir()
    before = told.at(told.begun[trunk]).commit.parents[0]
    made = told.copy(place, {trunk: before})
    world = made.world
    patch_thread(world.store, world.caller, made.thread, {"apart": True})
    run_until(world, made.thread, play, "split")
    list(list_leaves(world.store, world.snapshot(made.thread)))
    git("fetch", "-q", world.store.path, "+refs/*:refs/apart/*", cwd=ends.path)
    refs = refs_of(world.store)
    ends.refs["to"] = (trunk, refs.pop(trunk))
    ends.refs["o"] = next(iter(refs.items()))


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Ends:
    """Return the two ways of a thread of a workflow, which differ as asked."""
    name, how = request.param
    place = tmp_path_factory.mktemp("ends")
    told = tell(place, name)
    made = make_ends(told, place, how)
    add_orphan(told, place / "apart", made)
    return made


def push(at: Ends, hub: Store, words: str) -> list[str]:
    """Push what *words* name in one push; return why the hub refused it."""
    pushed = [at.refs[word] for word in words.split("+")]
    updates = [RefUpdate(ref, hub.refs.find(ref), Oid(oid)) for ref, oid in pushed]
    told = [each.message for each in check_received(hub, updates)]
    for name, old, new in () if told else updates:
        assert new is not None
        if old is None:
            assert hub.refs.create(name, new)
        else:
            assert hub.refs.advance(name, seen=old, to=new)
    return told


# What is pushed, one after the other; the hub refuses the last.
REFUSED = """
x ty; x ty.; x+begun y; x y; x y-; x- ty; x- y-; x- y; tx y; tx y-; tx ty; tx ty.; tx. y; tx. y-
tx tx. y; tx tx. y-; tx begun y; tx begun y-; tx x- y; tx x y; split tx y
split begun tx y; split begun tx y-; split x ty; split+begun y tx
split+begun y- tx; tx+y; tx+y-; ty+x; tx.+y; ty.+x-; split o; tx o
split+o; split begun o; to split; to begun
"""
ACCEPTED = """
tx x; tx x-; tx begun x- x; x tx tx.; y ty; tx+x; split y ty; split+begun y-
y+ty.; o; to o; o to; to+o; split begun x
"""
INNER = "tx yy; x yy; tx begun yy; tx+yy"


def rows(text: str) -> list[str]:
    """List the rows of a table."""
    return [each.strip() for line in text.split("\n") for each in line.split(";") if each.strip()]


def new_hub(ends: Ends) -> Store:
    """Return a store without refs that has the objects of all pushes, as a hook sees them."""
    return open_store(str(ends.path))._replace(refs=fresh_store().refs)


PLAIN = [("parallel", "other")]


@pytest.mark.parametrize("ends", PLAIN, indirect=True, ids=" ".join)
@pytest.mark.parametrize("words", rows(REFUSED))
def test_another_end_or_history_is_refused(ends: Ends, words: str) -> None:
    hub = new_hub(ends)
    *before, last = words.split()
    for each in before:
        assert push(ends, hub, each) == []
    assert push(ends, hub, last)


@pytest.mark.parametrize("ends", PLAIN, indirect=True, ids=" ".join)
@pytest.mark.parametrize("words", rows(ACCEPTED))
def test_the_end_that_was_joined_is_accepted(ends: Ends, words: str) -> None:
    hub = new_hub(ends)
    for each in words.split():
        assert push(ends, hub, each) == []


@pytest.mark.parametrize("ends", [("nested", "other")], indirect=True, ids=" ".join)
def test_another_end_within_a_branch_is_refused(ends: Ends) -> None:
    for words in rows(INNER):
        hub = new_hub(ends)
        *before, last = words.split()
        assert [push(ends, hub, each) for each in before] == [[]] * len(before)
        assert push(ends, hub, last), words
        assert push(ends, hub, "xx") == []
