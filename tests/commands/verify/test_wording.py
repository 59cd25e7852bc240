"""The author, subject and body of a commit: what is free in them, and how they are quoted."""

from pathlib import Path
from typing import Any

import pytest
from commands.forging import forge, messages, says, troubles
from commands.world import Git, World, fails, replied

from uwf_git.commands.control.answer import PersonAnswer
from uwf_git.commands.inspect.list import ListRequest, list_thread_rows
from uwf_git.commands.turn.turn import Turn
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE

# 12 threads and a workflow of format 1.
OLD = Path(__file__).parent / "recorded" / "bc62f3a.bundle"


def test_notes_of_people_are_free(world: World) -> None:
    thread = world.waiting()
    world.answer(thread, PersonAnswer({"ok": False}, "Not yet.", note="sorry"))
    world.kill(thread, reason="enough")

    notes = {-2: says("    sorry", "    my fault"), -1: says("    enough", "    by order")}
    forge(world.store, ARCHIVE + thread, notes)

    world.assert_whole()


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
    thread = world.stepped(lambda _turn: replied(meta, content))
    world.fail(thread, fails("a\nb: " + "c" * 300, stderr=b"\n\r\n x\r" + b"y \n" * 2000))

    world.assert_whole()


def test_numbers_are_quoted_as_they_are_stored(world: World) -> None:
    thread = world.stepped(lambda _turn: replied({"text": "", "x": 1.0, "y": 2}, "```"))
    forge(world.store, ACTIVE + thread, {1: says('"x": 1,', '"x": 1.0,')})

    (found,) = messages(world)
    assert found.startswith("its subject is ")


def test_role_with_any_name_is_the_author(world: World, thread: ThreadId) -> None:
    def play(turn: Turn) -> Any:
        assert turn.role == "writer"
        return replied({"text": "x"})

    world.step(thread, play, command="'/opt/my agent (2)!' --key x")

    world.assert_whole()


def test_an_old_format_is_refused_once_and_the_rest_is_checked(world: World, git: Git) -> None:
    thread = world.begun()
    places = ["refs/archive/*:refs/archive/*", "refs/threads/*:refs/threads/*"]
    places.append("refs/workflows/*:refs/workflows/old-*")
    git("fetch", "-q", str(OLD), *places, cwd=world.store.path)
    world.reopen()
    forge(world.store, ACTIVE + thread, {0: says("Uwf-Depth: 0", "Uwf-Depth: 1")})

    told = troubles(world)

    old = [each for each in told if "90d8292" in each.message]
    assert [each.message for each in told if each not in old] == ["Uwf-Depth is 1, and must be 0"]
    assert len({each.ref for each in old}) == len(old) == 13
    rows = list_thread_rows(world.store, ListRequest(statuses=frozenset({"unreadable"})))
    assert {f"refs/threads/{row['thread']}" for row in rows} <= {each.ref for each in old}
    assert rows
    assert all("90d8292" in row["error"] for row in rows)
