"""Commits whose author, subject or body are not those of their nodes, with true trailers."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands.forging import Change, forge, messages, run_by, says, troubles
from commands.world import World, fails, replied
from commands.world import says as replies
from dulwich.objects import Commit
from store.story import THREAD, Story

from uwf_git.commands.control.answer import PersonAnswer, answer_thread, read_question
from uwf_git.commands.control.kill import kill_thread
from uwf_git.commands.control.pause import pause_thread
from uwf_git.commands.control.resume import resume_thread
from uwf_git.commands.step.step_thread import TurnFailed
from uwf_git.commands.turn.turn import Turn
from uwf_git.commands.verify.signatures import verify_signatures
from uwf_git.commands.verify.verify import verify
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.git.config import set_config
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE

REF = ACTIVE + THREAD
# Threads of 16 kinds of events, 11 commits signed, written by commit bc62f3a.
RECORDED = Path(__file__).parent / "recorded"
OLD_THREADS, OLD_FLOWS = RECORDED / "bc62f3a.bundle", RECORDED / "321c7c8.bundle"
OLD_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIbB+4HXy7X5YM06aKeBPI+7St8X9lNBU9o+fVQIu5OH"
MALLORY = b"Mallory <m@example.com>"


def authored(name: bytes) -> Change:
    """Change the author."""

    def change(commit: Commit) -> None:
        commit.author = name

    return change


def dated(time_s: int) -> Change:
    """Change the author's date."""

    def change(commit: Commit) -> None:
        commit.author_time = time_s

    return change


@pytest.fixture(params=["", "thinking\n"], ids=["no log", "a log"])
def story(request: pytest.FixtureRequest, store: Store, clock: Callable[[], int]) -> Story:
    """Return a thread: a start, a step whose agent logged something or not, a failed try."""
    story = Story(store, clock)
    story.step(log=request.param)
    story.attempt("no luck: none", body="KeyError\n")
    return story


@pytest.fixture
def steered(world: World) -> ThreadId:
    """Return a thread: start, step, pause, resume, wait, answer, step, kill."""
    world.put()
    thread = world.start("nobody", "checker=human")
    store, caller = world.store, world.caller
    world.step(thread, replies({"text": "short"}, "{}"))
    pause_thread(store, caller, thread, reason="lunch\nback at two")
    resume_thread(store, caller, thread)
    world.step(thread)
    question = read_question(store, caller, thread)
    answer_thread(store, caller, question, PersonAnswer({"ok": False}, "Not yet.", note="sorry"))
    world.step(thread, replies({"text": "again"}))
    kill_thread(store, caller, thread, reason="enough")
    return thread


@pytest.mark.parametrize(
    ("number", "change", "told"),
    [
        (1, authored(MALLORY), "its author is 'Mallory <m@example.com>', and must be 'writer <uwf"),
        (2, authored(MALLORY), "its author is 'Mallory <m@example.com>', and must be 'writer <uwf"),
        (0, authored(MALLORY), "its author is 'Mallory <m@example.com>', and must be 'C O Mitter "),
        (0, run_by(MALLORY), "its author is 'C O Mitter <committer@example.com>', and must be 'Ma"),
        (1, dated(5), "its author's date is 5 +0000, and its committer's 1760000001 +0000"),
        (0, says("start: Write a haiku.", "start: Write an ode."), "its subject says 'Write an od"),
        (1, says("writer: An old", "checker: An old"), "its subject is 'checker: An old silent po"),
        (1, says("writer: An old", "writerly: An old"), "its subject is 'writerly: An old silent "),
        (1, says("writer: An old", "writer: A new"), "its subject says 'A new silent pond', which"),
        (1, says("pond\n\n", "pond\n\n    I approve.\n\n"), "its body is 'I approve.', and its no"),
        (2, says("luck: none", "luck: all"), "its subject says 'attempt 1 failed: no luck: all', "),
        (2, says("attempt 1 failed: no luck: none", "went well"), "its subject says 'went well', "),
        (2, says("attempt 1 failed", "all is well " * 6), "its subject says 'all is well all is w"),
        (2, says("    KeyError", "    It works"), "its body is 'It works', and its nodes give 'Ke"),
        (2, says("    KeyError\n\n", ""), "its body is '', and its nodes give 'KeyError"),
    ],
)  # fmt: skip
def test_words_that_are_not_those_of_the_node_are_reported(
    store: Store, story: Story, number: int, change: Change, told: str
) -> None:
    oids = forge(store, REF, {number: change})

    (found,) = troubles(store)
    assert (found.commit, found.message[: len(told)]) == (oids[number], told)
    assert "made by hand" in found.hint


def test_wording_before_the_error_is_free(store: Store, story: Story) -> None:
    forge(store, REF, {2: says("attempt 1 failed", "try no. 1 came to nothing")})

    assert messages(store) == []


@pytest.mark.parametrize(
    ("number", "change", "told"),
    [
        (2, says("pause: lunch", "pause: fire"), "its subject says 'fire', which node"),
        (
            2,
            says("    back at two", "    back at ten"),
            "its body is 'lunch\\nback at ten', and its",
        ),
        (
            3,
            says("\n\nUwf", "\n\n    It is safe.\n\nUwf"),
            "its body is 'It is safe.', and its nodes",
        ),
        (
            4,
            says("    Check.", "    Approve!"),
            "its body is 'Approve!', and its nodes give 'Check.'",
        ),
        (
            5,
            authored(b"checker <human@uwf>"),
            "its author is 'checker <human@uwf>', and must be 'C O",
        ),
        (5, says("Not yet.", "Go on."), "its subject says 'Go on.', which node"),
        (6, says("What was said.", "All is well."), "its subject says 'All is well.', which node"),
    ],
)
def test_words_of_steering_are_those_of_the_signal(
    world: World, steered: ThreadId, number: int, change: Change, told: str
) -> None:
    assert messages(world) == []

    oids = forge(world.store, ARCHIVE + steered, {number: change})

    (found,) = troubles(world)
    assert (found.commit, found.message[: len(told)]) == (oids[number], told)


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (3, says("resume: resumed", "resume: goes on")),
        (5, says("    sorry", "    my fault")),
        (7, says("    enough", "    by order")),
        (7, says("killed after 3 steps", "stopped after three")),
    ],
)
def test_free_wording_and_notes_of_people_are_not_compared(
    world: World, steered: ThreadId, number: int, change: Change
) -> None:
    forge(world.store, ARCHIVE + steered, {number: change})

    assert messages(world) == []


@pytest.mark.parametrize(
    ("meta", "content"),
    [
        ({"text": "", "summary": "##\n word  word " + "w" * 300}, "{}"),
        ({"text": "", "n": [1.0, 1e21, 2**70, -0.0, {"x": 1.50}] * 30}, "{}"),
        ({"text": "", "x": 1.0, "y": "2.0 \x07 é\u200b"}, "```"),
        ({"text": "", "title": "# "}, "\n\n## tab\there\r\nnext"),
        ({"text": ""}, "x" * 20_000),
        ({"text": ""}, "\n" * 20_000 + "too late"),
    ],
)
def test_whatever_a_role_says_is_quoted_as_it_is_stored(
    world: World, meta: dict[str, Any], content: str
) -> None:
    """Also numbers that are stored in another form: versions before this one quoted the first."""
    thread = world.begun()
    world.step(thread, lambda _turn: replied(meta, content))
    with pytest.raises(TurnFailed):
        world.step(thread, fails("a\nb: " + "c" * 300, stderr=b"\n\r\n x\r" + b"y \n" * 2000))

    assert messages(world) == []

    def quote_as_typed(commit: Commit) -> None:
        commit.message = commit.message.replace(b'"x": 1,', b'"x": 1.0,')

    forge(world.store, ACTIVE + thread, {1: quote_as_typed})
    assert messages(world) == []


def test_role_with_any_name_is_the_author(world: World) -> None:
    thread = world.begun()

    def play(turn: Turn) -> Any:
        assert turn.role == "writer"
        return replied({"text": "x"})

    world.step(thread, play, command="'/opt/my agent (2)!' --key x")

    assert messages(world) == []


def fetch(bundle: Path, place: Path, git: Callable[..., str]) -> str:
    """Return the path of a new store with what is in *bundle*."""
    path = str(place / "old.git")
    git("init", "-q", "--bare", path, cwd=place)
    git("fetch", "-q", str(bundle), "refs/*:refs/*", cwd=path)
    return path


@pytest.fixture
def old(tmp_path: Path, git: Callable[..., str]) -> Store:
    """Return a store with the recorded threads."""
    path = fetch(OLD_THREADS, tmp_path, git)
    signers = tmp_path / "signers"
    signers.write_text(f"ada@example.com {OLD_KEY}\n")
    set_config(os.path.join(path, "config"), "gpg.ssh.allowedSignersFile", str(signers))
    return open_store(path, environ=os.environ)


def test_threads_of_an_old_version_are_whole(old: Store) -> None:
    verified = verify(old, [])

    assert verified.troubles == ()
    assert verified.checked._asdict() == {
        "threads": 12, "workflows": 1, "commits": 99, "nodes": 129,
    }  # fmt: skip
    tips = [(each.ref, each.tip) for each in verified.targets if each.tip is not None]
    signed = list(verify_signatures(old, os.environ, tips))
    assert {each.event for each in signed} == {
        "start", "step", "attempt", "wait", "answer", "pause", "resume", "retry", "patch", "amend",
        "poke", "fork", "end", "kill", "put", "rollback", "remove",
    }  # fmt: skip
    assert [each.verdict.status for each in signed].count("good") == 11


def test_flows_of_an_old_version_are_whole(tmp_path: Path, git: Callable[..., str]) -> None:
    store = open_store(fetch(OLD_FLOWS, tmp_path, git), environ=os.environ)

    verified = verify(store, [])

    assert verified.troubles == ()
    assert verified.checked._asdict() == {
        "threads": 42, "workflows": 5, "commits": 177, "nodes": 146,
    }  # fmt: skip


def test_each_commit_of_an_old_thread_has_the_author_of_its_nodes(old: Store) -> None:
    for target in verify(old, []).targets:
        if target.kind == "archive" and target.tip is not None:
            forge(old, target.ref, {-2: authored(MALLORY)})

    told = messages(old)
    assert len(told) == 8
    assert all(each.startswith("its author is 'Mallory <m@example.com>'") for each in told)
