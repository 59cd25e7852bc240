"""Every way in which a push may change the refs of one thread, and what comes of it."""

import functools
import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from commands.world import Git, World, says
from fresh_store import fresh_store
from hypothesis import given
from hypothesis import strategies as st
from interop.forge import path_of, take_apart
from refusing import refuses
from store.story import THREAD, Story

from uwf_git.agents.limited_fork import LimitHit
from uwf_git.commands.receive import Push, announce_push, check_push, find_bad_move, find_bad_name
from uwf_git.model.builtin import TEXT
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.git.hook_files import RefUpdate
from uwf_git.store.store import NotAStore, Store

ACTIVE, ARCHIVE = f"refs/threads/{THREAD}", f"refs/archive/{THREAD}"
WORKFLOW = "refs/workflows/demo"


@dataclass
class Told:
    """A thread's commits, and stores that have it at one of them."""

    store: Store
    commits: dict[str, Oid]

    def push(self, stored: dict[str, str], *asked: tuple[str, str | None]) -> list[str | None]:
        """Return the refusals of the changes *asked*, in a store with the refs *stored*."""
        store = self.store._replace(refs=fresh_store().refs)
        for name, at in stored.items():
            store.refs.create(name, self.commits[at])
        updates = {
            # The old value that the pusher sends is ignored.
            name: RefUpdate(name, Oid("b" * 40), None if at is None else self.commits[at])
            for name, at in asked
        }
        found = [find_bad_move(Push(store, updates), update) for update in updates.values()]
        return [refusal and refusal.message for refusal in found]


@functools.cache
def make_told() -> Told:
    """Make a thread: start, one, two, then three or end; and `other`, which diverges after one."""
    numbers = iter(range(10**12, 10**13, 1000))
    story = Story(fresh_store(), lambda: next(numbers))
    commits = {"start": story.head.commit, "one": story.step().commit}
    commits["other"] = story.write_step("writer", "another way")
    commits["two"] = story.step().commit
    commits["end"] = story.write_end()
    commits["three"] = story.step().commit
    return Told(story.store, commits)


WAYS = [("start", "one", "two", "three"), ("start", "one", "two", "end"), ("start", "one", "other")]


def goes_on(new: str, old: str) -> bool:
    return any(old in way and new in way and way.index(old) <= way.index(new) for way in WAYS)


ALL = ["end", "one", "other", "start", "three", "two"]


@given(stored=st.sampled_from(ALL), new=st.sampled_from(ALL))
def test_any_ref_of_ours_moves_forward_only(stored: str, new: str) -> None:
    for name in (ACTIVE, WORKFLOW, "refs/cas/nodes"):
        (told,) = make_told().push({name: stored}, (name, new))
        assert (told is None) is goes_on(new, stored)
        assert make_told().push({}, (name, new)) == [None]


@given(active=st.sampled_from(ALL), new=st.sampled_from(ALL), delete=st.booleans())
def test_archive_comes_where_the_thread_leads(active: str, new: str, *, delete: bool) -> None:
    asked: list[tuple[str, str | None]] = [(ARCHIVE, new)]
    if delete:
        asked.append((ACTIVE, None))

    told = make_told().push({ACTIVE: active}, *asked)

    assert [each is None for each in told] == [goes_on(new, active)] * len(asked)


@given(active=st.sampled_from(ALL), moved=st.sampled_from(ALL), ended=st.sampled_from(ALL))
def test_thread_may_go_on_and_end_in_one_push(active: str, moved: str, ended: str) -> None:
    told = make_told().push({ACTIVE: active}, (ACTIVE, moved), (ARCHIVE, ended))

    fits = goes_on(moved, active) and goes_on(ended, moved)
    assert (told == [None, None]) is fits


@given(ended=st.sampled_from(ALL), new=st.sampled_from(ALL))
def test_archived_thread_is_never_touched_again(ended: str, new: str) -> None:
    (moved,) = make_told().push({ARCHIVE: ended}, (ARCHIVE, new))
    assert (moved is None) is (ended == new)
    assert moved is None or "never moved" in moved
    (deleted,) = make_told().push({ARCHIVE: ended}, (ARCHIVE, None))
    assert deleted is not None
    assert "never deleted" in deleted
    (begun,) = make_told().push({ARCHIVE: ended}, (ACTIVE, new))
    assert begun is not None
    assert "has ended, and is archived" in begun


@given(active=st.sampled_from(ALL), ended=st.sampled_from(ALL))
def test_litter_beside_an_archive_may_be_deleted(active: str, ended: str) -> None:
    (told,) = make_told().push({ACTIVE: active, ARCHIVE: ended}, (ACTIVE, None))

    assert (told is None) is goes_on(ended, active)


@pytest.mark.parametrize("name", [ACTIVE, WORKFLOW, "refs/cas/nodes"])
def test_what_would_be_lost_is_not_deleted(name: str) -> None:
    (told,) = make_told().push({name: "one"}, (name, None))

    assert told is not None
    assert told.startswith("it would be lost")


def test_missing_commit_is_reported() -> None:
    broken = Told(make_told().store, {**make_told().commits, "nowhere": Oid("1" * 40)})

    with refuses("damaged-commit", match="is missing"):
        broken.push({ACTIVE: "one"}, (ACTIVE, "nowhere"))


A = Oid("a" * 40)


@pytest.fixture
def push(clock: Callable[[], int]) -> Callable[..., list[str | None]]:
    """List the problems of names that are pushed together, beside a thread and `demo`."""
    store = fresh_store()
    store.refs.create("refs/workflows/demo", Story(store, clock).head.commit)

    def check(*names: str, new: Oid | None = A) -> list[str | None]:
        updates = {name: RefUpdate(name, None, new) for name in names}
        found = [find_bad_name(Push(store, updates), update) for update in updates.values()]
        return [refusal and refusal.message for refusal in found]

    return check


def test_bad_name_is_refused_for_every_kind_of_change(
    push: Callable[..., list[str | None]],
) -> None:
    for name, problem in [
        ("refs/threads/x", "'x' is not a thread id"),
        ("refs/threads/", "'' is not a thread id"),
        (f"refs/threads/{THREAD}/x", "is not a thread id"),
        (f"refs/archive/{THREAD.lower()}", "is not a thread id"),
        ("refs/workflows/a b", "is not a workflow name: ' ' (U+0020)"),
        ("refs/workflows/.a", "is not a workflow name"),
        ("refs/workflows/a.lock", "is not a workflow name"),
        ("refs/workflows/\udcff", "is not a workflow name"),
        (f"refs/workflows/{'x' * 101}", "is not a workflow name"),
        ("refs/workflows/8FWKR3TN5V1QA", "it could be a node hash"),
        ("refs/workflows/Demo", "differs from the workflow demo in case only"),
        ("refs/cas", "uwf has no ref of that name"),
        ("refs/threads", "uwf has no ref of that name"),
        (f"refs/Threads/{THREAD}", "uwf has no ref of that name"),
        ("refs/uwf/kept/x", "belong to one store alone"),
        ("refs/uwf/remotes/origin/threads/x", "belong to one store alone"),
    ]:
        for new in (A, None):
            (told,) = push(name, new=new)
            assert told is not None
            assert problem in told


@pytest.fixture
def heard(world: World, git: Git) -> Callable[[], list[dict[str, Any]]]:
    """Let a program listen, and return the events that it received."""
    listener = world.program('cat >>"$0.heard"', name="listener")
    git("config", "uwf.onReceive", listener, cwd=Path(world.store.path))
    world.reopen()
    path = Path(f"{listener}.heard")

    def read() -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    return read


def announce(world: World, *updates: RefUpdate) -> list[str]:
    return announce_push(world.store, updates, os.environ)


def active(thread: str) -> str:
    return f"refs/threads/{thread}"


def archive(thread: str) -> str:
    return f"refs/archive/{thread}"


def test_transition_is_announced_in_full(
    world: World,
    thread: ThreadId,
    heard: Callable[[], list[dict[str, Any]]],
    golden: Callable[[str, str], None],
) -> None:
    before = world.tip(thread)
    world.step(thread, says({"text": "a\nb"}))

    assert announce(world, RefUpdate(active(thread), before, world.tip(thread))) == []

    golden("commands/received.json", json.dumps(heard(), indent=2) + "\n")


@pytest.mark.parametrize("how", ["with the deletion", "alone", "after a step in the same push"])
def test_archived_thread_is_announced_from_its_last_commit_here(
    how: str, world: World, thread: ThreadId, heard: Callable[[], list[dict[str, Any]]]
) -> None:
    first = world.tip(thread)
    world.step(thread)
    second = world.tip(thread)
    world.step(thread)
    world.step(thread)
    last = world.tip(thread)
    moved = RefUpdate(archive(thread), None, last)
    if how == "with the deletion":
        updates = [RefUpdate(active(thread), first, None), moved]
    elif how == "alone":
        world.store.refs.create(active(thread), first)
        updates = [moved]
    else:
        world.store.refs.create(active(thread), second)
        updates = [moved, RefUpdate(active(thread), first, second)]

    assert announce(world, *updates) == []

    assert [line["event"] for line in heard()] == ["step", "step", "end"]
    assert {line["ref"] for line in heard()} == {archive(thread)}
    assert world.store.refs.find(active(thread)) is None
    assert world.store.refs.find(archive(thread)) == last


def test_diverged_active_ref_is_kept_and_reported(world: World, thread: ThreadId) -> None:
    first = world.tip(thread)
    world.step(thread)
    other = world.tip(thread)
    world.store.refs.advance(active(thread), seen=other, to=first)
    while world.step(thread, says({"text": "two", "ok": True})).role is not None:
        pass
    world.store.refs.create(active(thread), other)

    (warning,) = announce(world, RefUpdate(archive(thread), None, world.tip(thread)))

    assert f"{active(thread)} is kept beside it" in warning
    assert world.store.refs.find(active(thread)) == other


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("false", "false ended with status 1: "),
        ("/no/such/program", "could not be started"),
        ("'", "no closing quotation"),
    ],
)
def test_listener_that_fails_is_reported(
    command: str, told: str, world: World, thread: ThreadId, git: Git
) -> None:
    git("config", "uwf.onReceive", command, cwd=Path(world.store.path))
    world.reopen()

    (warning,) = announce(world, RefUpdate(active(thread), None, world.tip(thread)))

    assert warning.startswith("uwf.onReceive: ")
    assert told in warning


def test_what_a_listener_leaves_in_the_background_is_not_waited_for(
    world: World, thread: ThreadId, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uwf_git.commands.receive._TIMEOUT_S", 20)
    command = "sh -c 'sleep 60 & echo $! > left; exit 0'"
    git("config", "uwf.onReceive", command, cwd=Path(world.store.path))
    world.reopen()

    assert announce(world, RefUpdate(active(thread), None, world.tip(thread))) == []

    os.kill(int(Path(world.store.path, "left").read_text()), signal.SIGKILL)


def test_commit_that_cannot_be_read_is_a_warning(
    world: World, heard: Callable[[], list[dict[str, Any]]]
) -> None:
    thread = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")

    (warning,) = announce(world, RefUpdate(active(thread), None, Oid("1" * 40)))

    assert "is missing" in warning
    assert heard() == []


def test_objects_in_quarantine_are_seen(world: World, tmp_path: Path, git: Git) -> None:
    thread = world.begun()
    git("init", "-q", "--bare", "hub.git", cwd=tmp_path)
    hub = str(tmp_path / "hub.git")
    update = RefUpdate(f"refs/threads/{thread}", None, world.tip(thread))
    environ = os.environ | {
        "GIT_OBJECT_DIRECTORY": f"{world.store.path}/objects",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{hub}/objects",
    }

    assert check_push(hub, environ, [update]) == []
    (refusal,) = check_push(hub, os.environ, [update])
    assert "is missing" in refusal.message


def test_check_that_takes_too_long_is_ended(world: World, git: Git, thread: ThreadId) -> None:
    # A start with a parent would be refused at once: it is not the one that follows a split.
    world.step(thread)
    ref = f"refs/threads/{thread}"
    git("config", "uwf.receiveTimeout", "1", cwd=Path(world.store.path))
    tip = world.tip(thread)
    forge = take_apart(world.store, tip)
    forge.parents = [tip]
    numbers = b"[" + b"[0,{}]," * 1_000_000 + b"0]"
    document = b'{"type": "%s", "payload": %s, "timestamp": 1}' % (TEXT.encode(), numbers)
    forge.write(path_of("0123456789ABC") + ".json", document)

    with pytest.raises(LimitHit, match="the check of this push took too much time"):
        check_push(world.store.path, os.environ, [RefUpdate(ref, None, Oid(forge.commit()))])


def test_folder_without_a_store_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotAStore):
        check_push(str(tmp_path), os.environ, [])
