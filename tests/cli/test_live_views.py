"""Live views at real terminals: floods, escapes, 32 branches, 1,000 threads, sizes, signals."""

import os
import re
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest
from bench.archived import add_crowd
from cli.at_terminal import AtTerminal
from cli.program import ANSWER, Uwf

from uwf_git.cli.output.screen import display_width
from uwf_git.store.store import open_store

BRANCHES = 32
NODES = [f"{{type: agent, id: n{each}, agentId: role{each}}}" for each in range(BRANCHES)]
FLOW = f"""\
name: wide
root: {{type: parallel, name: all, nodes: [{", ".join(NODES)}]}}
"""
# Says what a hostile log may say, and ends when the file `go` is there.
HOSTILE = r"""
printf '\033[2J\033[H\033]0;title\007\033[?1049h\033[?25l\nat work \033[31mred\n' >&2
until [ -e go ]; do sleep 0.1; done
echo '{"meta": {}, "content": "done"}'
"""


def wide(uwf: Uwf, script: str) -> tuple[str, ...]:
    """Return the words that run 32 branches at once."""
    file, agent = uwf.file(FLOW, name="wide.json.yaml"), uwf.agent(script)
    return ("run", file, "-p", "x", "--agent", agent, "--jobs", str(BRANCHES))


def are_lines(columns: int, screen: list[str]) -> bool:
    """Tell whether each branch has a line that fits."""
    begun = sum(each.startswith("●") for each in screen)
    return begun == BRANCHES and max(map(display_width, screen)) < columns


def test_branches_have_a_line_each_whatever_the_size_and_none_is_left(uwf: Uwf) -> None:
    with AtTerminal(uwf, *wide(uwf, HOSTILE), columns=90, lines=50) as terminal:
        terminal.until_seen(
            lambda screen: sum("at work red" in each for each in screen) == BRANCHES
        )
        for columns in (60, 100):
            terminal.resize(columns, 50)
            terminal.until_seen(partial(are_lines, columns))
        terminal.resize(90, 12)
        terminal.until("   and 22 more")
        Path(uwf.place, "go").touch()
        assert terminal.wait() == 0
        assert terminal.is_sane
    assert sum(each.startswith("✓") for each in terminal.model.lines) == BRANCHES + 2
    # What had scrolled away when the screen became smaller cannot be erased.
    assert not re.search("●|and [0-9]+ more", "\n".join(terminal.model.screen))


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_run_that_is_ended_leaves_the_terminal_as_it_was(ending: signal.Signals, uwf: Uwf) -> None:
    words = ("run", uwf.file(), "-p", "x", "--agent", uwf.agent(HOSTILE))
    with AtTerminal(uwf, *words) as terminal:
        terminal.until("at work red")
        if ending is signal.SIGINT:
            terminal.type("\x03")
        else:
            os.kill(terminal.process.pid, ending)
        assert terminal.wait() != 0
        assert terminal.is_sane
        assert not any("at work" in each for each in terminal.model.lines)
        assert "nothing was lost" in " ".join(terminal.model.lines)


def test_flood_is_shown_by_its_last_words(uwf: Uwf) -> None:
    flood = "yes 'more of the same' | head -c 100000000 >&2; echo 'the end' >&2; sleep 60"
    with AtTerminal(uwf, "run", uwf.file(), "-p", "x", "--agent", uwf.agent(flood)) as terminal:
        terminal.until("the end")
        terminal.type("\x03")
        assert terminal.wait() == 130
        assert terminal.is_sane


def test_named_thread_is_watched_to_its_end(uwf: Uwf) -> None:
    thread = uwf.begun(uwf.agent(HOSTILE.replace('"meta": {}', '"meta": {"text": "", "ok": true}')))
    uwf("thread", "run", thread, "--background")
    with AtTerminal(uwf, "watch", thread, columns=120, lines=9) as terminal:
        terminal.until("writer: at work red")
        assert re.search(r"● running .* writer: at work red +[0-9] s$", terminal.text, re.MULTILINE)
        Path(uwf.place, "go").touch()
        assert terminal.wait() == 0
        assert terminal.is_sane
        assert terminal.model.screen[-1] == "1 completed"


def cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_thousand_threads_at_rest_cost_next_to_nothing(uwf: Uwf) -> None:
    add_crowd(open_store(str(uwf.session.repo)), size=1000, is_active=True)
    with AtTerminal(uwf, "watch", columns=80, lines=20) as terminal:
        terminal.until("1000 ready; 18 of 1000 shown")
        assert len(terminal.model.screen) == 20
        # Until the times of the folders have stood still.
        rest(terminal, 3)
        before = cpu_s(terminal.process.pid)
        rest(terminal, 5)
        assert cpu_s(terminal.process.pid) - before < 0.25
        thread = uwf.begun(uwf.agent(ANSWER))
        terminal.until("1001 ready")
        assert thread[:10] in terminal.model.screen[1]
        terminal.type("\x03")
        assert terminal.wait() == 130
        assert terminal.is_sane


def rest(terminal: AtTerminal, seconds: float) -> None:
    """Let the program run on for a while."""
    with pytest.raises(subprocess.TimeoutExpired):
        terminal.process.wait(timeout=seconds)


def test_sigterm_gives_the_terminal_back_too(uwf: Uwf) -> None:
    uwf.begun()
    with AtTerminal(uwf, "watch", columns=70, lines=6) as terminal:
        terminal.until("1 ready")
        os.kill(terminal.process.pid, signal.SIGTERM)
        assert terminal.wait() == 130
        assert terminal.is_sane


def test_suspended_view_gives_the_terminal_back_and_takes_it_again(uwf: Uwf) -> None:
    uwf.begun()
    with AtTerminal(uwf, "watch", columns=70, lines=6) as terminal:
        terminal.until("1 ready")
        terminal.type("\x1a")
        _pid, status = os.waitpid(terminal.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        terminal.read()
        assert terminal.is_sane
        os.kill(terminal.process.pid, signal.SIGCONT)
        terminal.until("1 ready")
        assert terminal.model.is_other
