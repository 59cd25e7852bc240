"""Progress lines while several branches are at work."""

import re
import threading

import pytest
from cli.program import Uwf
from cli.terminal import Terminal
from cli.thread.test_branches import CHECKS
from cli.thread.test_progress import terminal

from uwf_git.cli.output.live import Lines, forwarded_output

__all__ = ["terminal"]

# Each waits until the other has begun, so that both are at work at once.
AGENT = """
touch "begun.$UWF_ROLE"
until [ -e begun.reviewer ] && [ -e begun.tester ]; do sleep 0.01; done
echo "thinking" >&2
sleep 0.3
echo "{\\"meta\\": {\\"$UWF_ROLE\\": 1}, \\"content\\": \\"$UWF_ROLE is content\\"}"
"""


def run(uwf: Uwf, *words: str, agent: str = AGENT, flow: str = CHECKS) -> str:
    ran = uwf("run", uwf.file(flow), "-p", "x", "--agent", uwf.agent(agent), *words)
    assert ran.status == 0, ran.err
    return ran.err


FAILS = """
[ $UWF_ROLE = reviewer ] || { echo "no compiler" >&2; exit 7; }
echo '{"meta": {}, "content": "fine"}'
"""


def test_branch_that_is_given_up_is_named_with_its_error(uwf: Uwf) -> None:
    flow = CHECKS.replace("  nodes:", "  onError: continue\n  nodes:")
    lines = run(uwf, agent=FAILS, flow=flow).splitlines()

    said = r"1 tester: tester failed \(.*\): exit status 7: no compiler; given up, and .* goes on"
    assert any(re.fullmatch(said, each) for each in lines)
    (given_up,) = uwf.json("thread", "show", thread := lines[0].split()[1])["givenUp"]
    assert (given_up["number"], given_up["error"]) == (1, "exit status 7: no compiler")
    shown = uwf("--format", "text", "thread", "show", thread).out
    assert "given up  1 tester: exit status 7: no compiler" in shown.splitlines()


def test_branch_that_waits_for_a_limit_is_named(uwf: Uwf) -> None:
    limit = """printf '{"kind": "limit", "resetAt": 1}' > "$UWF_STEP_DIR/failure.json"; exit 1"""
    once = f'if [ "$UWF_ROLE$UWF_ATTEMPT" = tester1 ]; then {limit}; fi; echo done'
    lines = run(uwf, "--wait", agent=once).splitlines()

    assert "1 tester: tester waits until 1970-01-01 00:00:00 UTC: its agent hit a limit" in lines


def test_branch_that_fails_leaves_a_line_at_a_terminal(terminal: Uwf) -> None:
    ran = terminal("run", terminal.file(CHECKS), "-p", "x", "--agent", terminal.agent(FAILS))

    assert ran.status == 3
    seen = Terminal(100, 24)
    seen.write(ran.err)
    assert [each for each in seen.lines if each.startswith("✗    1 tester    exit status 7: no c")]


def test_streamed_lines_say_which_branch_they_are_of(uwf: Uwf) -> None:
    told = run(uwf, "--stream").splitlines()

    assert "0 reviewer: thinking" in told
    assert "1 tester: thinking" in told


def test_each_that_is_at_work_has_a_line(terminal: Uwf) -> None:
    # Long enough to be drawn on a machine that has much else to do.
    told = run(terminal, agent=AGENT.replace("sleep 0.3", "sleep 2"))

    seen = Terminal(80, 24)
    shots = []
    for piece in re.split(r"(?=\r\x1b\[2K)", told):
        seen.write(piece)
        shots.append(list(seen.lines))
    both = [shot for shot in shots if sum("thinking" in line for line in shot) == 2]
    assert re.fullmatch(r"●  1 0 reviewer  \d+ s, attempt 1: thinking", both[-1][-2])
    assert re.fullmatch(r"●  1 1 tester    \d+ s, attempt 1: thinking", both[-1][-1])
    # Nothing is left of them below the lines that stay.
    assert sum(line.startswith("✓") for line in seen.lines) == 3
    assert not any(line.startswith("●") for line in seen.lines)


def test_what_a_listener_did_wrong_is_noted_above_the_lines(terminal: Uwf) -> None:
    terminal.json("config", "set", "uwf.onEvent", terminal.agent("exit 1", name="listener"))

    # The tester ends while two others are at work.
    flow = CHECKS + "    - {type: agent, agentId: editor}\n"
    agent = AGENT.replace("sleep 0.3", "[ $UWF_ROLE = tester ] || sleep 0.6")
    told = run(terminal, agent=agent, flow=flow)

    seen = Terminal(200, 40)
    seen.write(told)
    noted = [line for line in seen.lines if "onEvent" in line]
    assert noted
    assert all(line.startswith("note: uwf.onEvent: ") for line in noted)
    assert not any("●" in line for line in seen.lines)


def test_lines_of_agents_at_once_do_not_mix(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()

    def write(name: str) -> None:
        with forwarded_output(lines, name=name) as output:
            for _count in range(200):
                output.stderr(b"one ")
                output.stderr(b"line\n")

    writers = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    told = capsys.readouterr().err.splitlines()
    assert {line.partition(": ")[0] for line in told} == {"a", "b"}
    assert {line.partition(": ")[2] for line in told} <= {"one line", "one ", "line"}
