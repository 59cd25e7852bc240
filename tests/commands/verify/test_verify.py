"""The whole store: honest ones are clean, and every kind of damage is named."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from commands.forging import (
    forge,
    messages,
    run_by,
    says,
    tip_of,
    troubles,
)
from commands.world import Git, World, fails
from commands.world import says as answers
from dulwich.objects import Blob
from store.small_packs import loosen
from store.story import THREAD, Story, tell_small_story

from uwf_git.commands.cas import put_payload
from uwf_git.commands.verify.verify import verify
from uwf_git.errors import AgentFailed
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.git.config import set_config
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, get_head

OTHER = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4V")


@pytest.fixture
def store(world: World) -> Store:
    """Return an empty store on the disk."""
    return world.store


@pytest.fixture
def thread(world: World) -> ThreadId:
    """Return a thread of two steps, each of its objects a file."""
    thread = world.stepped()
    world.step(thread, answers({"ok": False}))
    loosen(world.store)
    return thread


@pytest.mark.parametrize("how", ["missing", "other"])
def test_every_object_of_a_store_is_missed(how: str, world: World) -> None:
    thread = world.stepped()
    with pytest.raises(AgentFailed):
        world.step(thread, fails(stdout=b"oh"))
    put_payload(world.store, world.caller, "Text", "a note")
    loosen(world.store)
    files = sorted(path for path in Path(world.store.path, "objects").glob("??/*"))
    silent: list[str] = []
    for file in files:
        content = file.read_bytes()
        file.unlink()
        if how == "other":
            file.write_bytes(Blob.from_string(b"other").as_legacy_object())
        found = troubles(open_store(world.store.path))
        assert all(
            each.hint and (each.ref or each.message.startswith("objects/")) for each in found
        )
        if not found:
            silent.append(file.parent.name + file.name)
        file.unlink(missing_ok=True)
        file.write_bytes(content)

    assert silent == []
    assert len(files) > 60


@pytest.mark.parametrize("content", [b"", b"ref: refs/heads/main\n", b"1" * 40 + b"\n"])
def test_ref_that_points_nowhere_is_reported(
    content: bytes, world: World, thread: ThreadId
) -> None:
    other = world.start()
    Path(world.store.path, ACTIVE + thread).write_bytes(content)

    (found,) = troubles(world)
    assert found.ref == ACTIVE + thread
    assert messages(world, other) == []
    assert messages(world, ACTIVE + thread) == [found.message]


def test_archived_thread_with_its_active_ref_is_noted_and_no_trouble(store: Store) -> None:
    clock = iter(range(1_760_000_000_000, 1_770_000_000_000, 1000)).__next__
    before = Oid(tell_small_story(store, clock).snapshot.commit.parents[0])
    store.refs.create(ACTIVE + THREAD, before)

    done = verify(store, [])

    assert done.troubles == ()
    assert [note.ref for note in done.notes] == [ACTIVE + THREAD]
    assert "uwf gc" in done.notes[0].hint


def test_thread_that_went_on_after_its_end_elsewhere_is_reported(
    store: Store, clock: Callable[[], int]
) -> None:
    story = Story(store, clock)
    story.step()
    at = story.head
    story.end()
    story.head = at
    other = story.write_step("writer", "more")
    store.refs.create(ACTIVE + THREAD, other)

    (found,) = troubles(store)
    assert found.message.startswith(f"thread {THREAD} went on after it was archived")
    assert other in found.message
    assert f"update-ref -d {ACTIVE + THREAD} {other}`" in found.hint
    assert found.ref == ACTIVE + THREAD


def test_advice_on_what_goes_on_from_an_end_keeps_the_archive(
    world: World, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "1800000000 +0000")
    thread = world.begun()
    world.kill(thread)
    end = get_head(world.store, thread).commit
    words = ("-p", end, "-m", "a note", f"{end}^{{tree}}")
    note = git("commit-tree", *words, cwd=world.store.path).strip()
    git("update-ref", ACTIVE + thread, note, cwd=world.store.path)

    (hint,) = (each.hint for each in troubles(world) if "went on after" in each.message)

    assert f"update-ref -d {ACTIVE + thread}" in hint
    assert f"update-ref -d {ARCHIVE}" not in hint


@pytest.mark.parametrize("active", ["ahead", "behind", "nowhere"])
def test_advice_on_an_archive_that_has_not_ended_loses_no_step(
    store: Store, clock: Callable[[], int], active: str
) -> None:
    story = Story(store, clock)
    first, newest = story.head.commit, story.step().commit
    store.refs.create(ARCHIVE + THREAD, first if active == "ahead" else newest)
    if active == "behind":
        store.refs.advance(ACTIVE + THREAD, seen=newest, to=first)
    elif active == "nowhere":
        store.refs.delete(ACTIVE + THREAD, seen=newest)

    hints = {each.hint for each in troubles(store)}

    assert len(hints) == 1
    for command in re.findall("`(git [^`]+)`", hints.pop()):
        subprocess.run(command, shell=True, check=True)
    assert troubles(store) == []
    assert store.refs.find(ACTIVE + THREAD) == newest


def test_rewritten_history_is_detected_by_the_tracking_refs(world: World, thread: ThreadId) -> None:
    world.configure("remote.origin.url", "/nowhere")
    tracking = f"refs/uwf/remotes/origin/threads/{thread}"
    before = tip_of(world.store, ACTIVE + thread)
    world.store.refs.create(tracking, before)
    world.assert_whole()

    oids = forge(world.store, ACTIVE + thread, {1: run_by(b"Mallory <m@x>")})

    verified = verify(world.store, [])
    assert verified.troubles == ()
    (found,) = verified.notes
    assert found.message == (
        f"{ACTIVE}{thread} has diverged: it is at {oids[-1]}, and remote origin had it at "
        f"{before}: neither goes on from the other"
    )
    assert (found.ref, found.commit) == (ACTIVE + thread, oids[-1])
    assert f"log {oids[-1]} ^{before}` shows what is only here; `uwf fetch origin`" in found.hint


def test_what_is_lost_is_not_said_to_have_gone_another_way(world: World, thread: ThreadId) -> None:
    set_config(f"{world.store.path}/config", "remote.origin.url", "/nowhere")
    tip = tip_of(world.store, ACTIVE + thread)
    world.store.refs.create(f"refs/uwf/remotes/origin/threads/{thread}", tip)
    Path(world.store.path, "refs", "threads", thread).write_text("1" * 40 + "\n")
    world.reopen()
    (found,) = troubles(world)
    assert "is missing" in found.message


def test_forged_head_of_a_thread_that_was_looked_at_already_is_reported(
    store: Store, clock: Callable[[], int]
) -> None:
    first = Story(store, clock)
    first.step()
    store.refs.create(ACTIVE + OTHER, first.head.commit)

    assert messages(store) == [f"{ACTIVE}{OTHER} points at a commit of thread {THREAD}"]


def test_only_what_is_named_is_looked_at(world: World, thread: ThreadId) -> None:
    forge(world.store, "refs/workflows/demo", {0: says("Uwf-Event: put", "Uwf-Event: pot")})

    assert messages(world, thread) == []
    assert messages(world, "demo") == ["Uwf-Event is pot, and must be put or rollback or remove"]
    assert len(messages(world)) == 1
