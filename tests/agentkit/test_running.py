import gc
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from agentkit.conftest import MakeContext, Turn
from cli.program import Ran

from uwf_git.agentkit.running import LiveLog, complete, run_as_agent
from uwf_git.agentkit.turn import AgentResult
from uwf_git.engine.turn_context import AgentContext

Agent = Callable[..., Ran]

FRAME = """\
import os, subprocess, sys
from uwf_git.agentkit.turn import AgentResult
from uwf_git.agentkit.running import run_as_agent
from uwf_git.errors import Refused

def produce():
{body}

sys.exit(run_as_agent(produce))
"""


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    """Run the body of a function as an agent, in a process of its own."""

    def run(body: str, **environ: str) -> Ran:
        script = tmp_path / "agent.py"
        script.write_text(FRAME.format(body=textwrap.indent(body, "    ")))
        return Turn(tmp_path, "").python(str(script), **environ)

    return run


def test_result_is_all_that_stdout_gets(agent: Agent) -> None:
    ran = agent(
        "print('debugging')\n"
        "subprocess.run(['echo', 'from a tool'])\n"
        "os.write(1, b'by hand\\n')\n"
        "return AgentResult({'ok': True}, 'text')"
    )

    assert (ran.status, ran.out) == (0, '{"meta": {"ok": true}, "content": "text"}\n')
    assert set(ran.err.splitlines()) == {"debugging", "from a tool", "by hand"}


def test_what_is_printed_after_the_result_goes_to_the_log(agent: Agent) -> None:
    ran = agent(
        "import atexit\n"
        "atexit.register(lambda: (print('bye'), os.write(1, b'by hand\\n')))\n"
        "return AgentResult({'ok': True}, 'text')"
    )

    assert (ran.status, ran.out) == (0, '{"meta": {"ok": true}, "content": "text"}\n')
    assert set(ran.err.splitlines()) == {"bye", "by hand"}


@pytest.mark.parametrize(
    ("body", "status", "err"),
    [
        ("raise ValueError('no\\nmodel')", 1, "error: ValueError: no model\n"),
        ("raise Refused('not now', hint='wait')", 1, "error: not now\nhint: wait\n"),
        ("raise Refused('not now')", 1, "error: not now\n"),
        ("sys.exit(3)", 3, ""),
        ("sys.exit()", 1, "the agent exited without a result\n"),
        ("sys.exit(0)", 1, "the agent exited without a result\n"),
        ("sys.exit('no key')", 1, "no key\n"),
        ("raise KeyboardInterrupt", 130, "interrupted\n"),
        ("return AgentResult({1, 2}, '')", 1, "error: the result cannot be written as JSON: "),
        ("os.dup2(os.open('/dev/full', os.O_WRONLY), 1)", 1, "error: AttributeError: "),
    ],
)
def test_whatever_goes_wrong_is_one_line_and_no_result(
    agent: Agent, body: str, status: int, err: str
) -> None:
    ran = agent(body)

    assert (ran.status, ran.out) == (status, "")
    assert ran.err.startswith(err)
    assert "Traceback" not in ran.err


def test_words_without_end_lose_their_middle_and_not_the_reason(agent: Agent) -> None:
    ran = agent(
        "from uwf_git.agentkit.ladder import NoMeta\n"
        "raise NoMeta('no fields', 'a' * 1_000_000 + 'm' * 50_000_000 + 'z' * 1_000_000)"
    )

    assert ran.status == 1
    assert len(ran.out) < 1_000_100
    assert ran.out.startswith("aaa")
    assert "\n[… 51,000,000 characters left out …]\n" in ran.out
    assert ran.out.endswith("zzz")
    assert ran.err.startswith("error: the answer holds no fields that fit")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_result_that_could_not_be_printed_is_a_failure(tmp_path: Path, agent: Agent) -> None:
    agent("return AgentResult({}, '')")

    ran = Turn(tmp_path, "").run("/bin/sh", "-c", f"exec {sys.executable} agent.py >/dev/full")
    ran.refused(1, "No space left on device")


def test_text_becomes_a_result(context: MakeContext) -> None:
    result = complete(lambda _: "---\napproved: true\n---\nFine.", context(), {})

    assert result == AgentResult({"approved": True}, "Fine.", rung="front-matter")


def test_result_is_left_as_it_is(context: MakeContext) -> None:
    result = AgentResult({"anything": 1}, "x", session="s")

    assert complete(lambda _: result, context(), {}) is result


def test_other_values_are_refused(context: MakeContext) -> None:
    def forgot(_context: AgentContext) -> None:
        return None

    async def later(_context: AgentContext) -> str:
        return ""

    for function, told in ((forgot, "NoneType"), (later, "coroutine")):
        with pytest.raises(TypeError, match=f"str or an AgentResult, not {told}"):
            complete(function, context(), {})  # type: ignore[arg-type]  # what an author might do


def test_collector_waits_while_an_agent_works_and_no_longer() -> None:
    before = gc.get_threshold()
    seen: list[int] = []

    def produce() -> AgentResult:
        seen.append(gc.get_threshold()[0])
        return AgentResult({}, "")

    assert run_as_agent(produce) == 0
    assert seen == [100_000]
    assert gc.get_threshold() == before


def test_flood_is_cut_with_one_note(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    log = LiveLog(5)

    for _ in range(3):
        log.add(b"1234")

    assert capfdbinary.readouterr().err == b"12341\n[the log ends here; the output goes on]\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_full_disk_costs_the_log_and_not_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        log = LiveLog()
        log.add(b"said")
        log.add(b"more")
