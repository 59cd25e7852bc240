"""`uwf watch`: lines where there is no screen; on a terminal a view that gives it back."""

import json

import pytest
from cli.at_terminal import AtTerminal
from cli.program import ANSWER, Uwf

from uwf_git.cli.output.screen import display_width


def ended(uwf: Uwf, *, agent: str = ANSWER) -> str:
    """Drive a thread to its end, and return its id."""
    thread = uwf.begun(uwf.agent(agent))
    uwf("thread", "run", thread)
    return thread


def test_threads_that_have_ended_are_a_line_each(uwf: Uwf) -> None:
    one, two = ended(uwf), ended(uwf)

    ran = uwf("watch", one, two)

    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.status == 0
    assert [(row["thread"], row["status"], row["depth"]) for row in rows] == [
        (one, "completed", 2), (two, "completed", 2)
    ]  # fmt: skip


@pytest.mark.parametrize("is_tty", [False, True])
def test_dumb_terminal_has_plain_lines(is_tty: bool, uwf: Uwf) -> None:  # noqa: FBT001 (a parameter)
    thread = ended(uwf, agent=ANSWER.replace("What was said", "a\\u202eb"))

    ran = uwf("watch", thread, output_format="text", stdout_is_tty=is_tty)

    shown = thread[:10] if is_tty else thread
    assert ran.out == f"✓ completed  {shown}  demo  2  checker: a b.\n"


def test_what_names_no_thread_is_refused(uwf: Uwf) -> None:
    assert uwf("watch", "01J").status == 1


def test_view_is_live_and_gives_the_terminal_back(uwf: Uwf) -> None:
    thread = uwf.begun(uwf.agent(f"until [ -e go ]; do sleep 0.02; done; {ANSWER}"))
    with AtTerminal(uwf, "watch", columns=70, lines=6) as terminal:
        terminal.until("1 ready")
        assert terminal.model.is_other
        assert not terminal.model.has_cursor
        uwf("thread", "pause", thread)
        terminal.until("1 paused")
        terminal.resize(40, 4)
        terminal.until_seen(lambda screen: "WHEN" not in screen[0] and screen[-1] == "1 paused")
        assert max(map(display_width, terminal.model.screen)) < 40
        terminal.type("x\x03")
        assert terminal.wait() == 130
        assert terminal.is_sane
        # What was seen last stays, and nothing of what was typed.
        assert terminal.model.screen[-1] == "1 paused"
