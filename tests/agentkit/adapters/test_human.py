import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agentkit.conftest import Turn
from agentkit.person import Seat
from programs import write_program

HUMAN = f"{sys.executable} -m uwf_git.agentkit.adapters human"
ADAPTER = ("-m", "uwf_git.agentkit.adapters", "human")


@pytest.fixture
def person(turn: Turn, seat: Seat) -> Seat:
    """Start a program in front of a person, at the turn of the role ``counter``."""
    return partial(seat, cwd=turn.place, UWF_REPO=f"{turn.place}/store.git")


def step(turn: Turn) -> tuple[str, ...]:
    return ("-m", "uwf_git", "thread", "step", turn.thread, "--agent", HUMAN)


def newest(turn: Turn) -> Any:
    return turn.uwf("thread", "show", turn.thread)["step"]


def test_person_is_shown_the_task_and_asked_for_each_field(turn: Turn, person: Seat) -> None:
    me = person(*step(turn))

    shown = me.wait_for("words: a whole number.")
    assert "Your turn as counter (step 1 of count-words" in shown
    assert "Count the words." in shown
    assert "one two three" in shown
    me.answer_all("> ", "", "this is needed", "many", "type a whole number", "3")
    me.answer_all("| ", "I counted", "| ", "twice.", "| ", ".", "[Y/n] ", "")
    status, _ = me.end()

    assert status == 0
    told = newest(turn)
    assert (told["meta"], told["content"]) == ({"words": 3}, "I counted\ntwice.")


def test_editor_is_opened_on_the_terminal(turn: Turn, person: Seat, tmp_path: Path) -> None:
    script = 'test -t 0 && test -t 1 && echo "Edited by hand." >>"$2"'
    editor = write_program(tmp_path / "editor", script)
    me = person(*step(turn), VISUAL=f"{editor} --wait")
    me.answer_all("> ", "4", "| ", "First.", "| ", ":e", "[Y/n] ", "")

    assert me.end()[0] == 0
    assert newest(turn)["content"] == "First.Edited by hand."


def test_person_that_does_not_confirm_is_asked_again(turn: Turn, person: Seat) -> None:
    me = person(*step(turn))
    me.answer_all("> ", "4", "| ", "Four.", "| ", ".", "[Y/n] ", "n")
    me.answer_all("[4] > ", "5", "| ", ".", "[Y/n] ", "y")

    assert me.end()[0] == 0
    told = newest(turn)
    assert (told["meta"], told["content"]) == ({"words": 5}, "Four.")


def test_whoever_presses_ctrl_c_has_handed_in_nothing(turn: Turn, person: Seat) -> None:
    me = person(*step(turn))
    me.answer("> ", "4")
    me.wait_for("| ")
    me.type("\x03")

    assert me.end()[0] == 130
    shown = turn.uwf("thread", "show", turn.thread)
    assert (shown["depth"], shown["status"], shown["step"]) == (0, "ready", None)


def test_terminal_that_is_closed_ends_the_question(
    turn: Turn, person: Seat, tmp_path: Path
) -> None:
    me = person(*ADAPTER, turn.thread, UWF_STEP_DIR=str(tmp_path))
    me.wait_for("> ")
    assert "one two three" in (tmp_path / "prompt.md").read_text()
    for _ in range(4):
        me.type("\x04")
    status, shown = me.end()

    assert status == 130
    assert "no answer: Ctrl-D was typed again and again" in shown


def test_own_terminal_will_do_without_an_engine(turn: Turn, person: Seat) -> None:
    me = person(*ADAPTER, turn.thread)
    me.answer_all("> ", "4", "| ", ".", "[Y/n] ", "")
    status, shown = me.end()

    assert status == 0
    assert '{"meta": {"words": 4}, "content": "", "rung": "asked"}' in shown


def test_second_question_at_one_terminal_waits_for_the_first(turn: Turn, person: Seat) -> None:
    me = person(*step(turn))
    me.wait_for("> ")
    with turn.start("human", turn.thread, UWF_TTY=me.name) as other:
        assert other.stderr is not None
        assert other.stderr.readline() == b"another agent is asking at this terminal; waiting\n"
        me.type("4\n")
        me.answer_all("| ", ".", "[Y/n] ", "")
        # The step is taken, and the other one asks.
        me.answer_all("Your answer as counter", "7", "| ", ".", "[Y/n] ", "")
        told = json.loads(other.stdout.read()) if other.stdout else {}

    assert me.end()[0] == 0
    assert newest(turn)["meta"] == {"words": 4}
    assert told["meta"] == {"words": 7}


def test_job_in_the_background_does_not_take_the_shell_s_lines(turn: Turn, person: Seat) -> None:
    background = (
        "import os, subprocess, sys; sys.exit(subprocess.run([sys.executable, "
        f"*{step(turn)!r}], process_group=0).returncode)"
    )
    status, shown = person("-c", background).end()

    assert status == 3
    assert "cannot ask a person" in shown
