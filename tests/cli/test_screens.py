"""What a person sees at a terminal, command by command: golden files, reviewed by eye.

Of real terminals (widths, colours, progress) is test_terminals.py.
"""

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from cli.program import Uwf
from cli.scenes import steady
from commands.world import DEMO

from uwf_git.cli.output.screen import display_width
from uwf_git.cli.session import thread_id_at
from uwf_git.model.names import ThreadId

AGENT = r"""
echo "reading the files" >&2
case "$UWF_ROLE" in
checker) cat <<'END' ;;
{"meta": {"ok": true, "found": [{"file": "a.py", "line": 3}, {"file": "日本.py"}]},
 "content": "All is well, and said at some length so that it has to be cut somewhere."}
END
*) cat <<'END' ;;
{"meta": {"text": "Names are escaped before the filter is built"},
 "usage": {"inputTokens": 145500, "outputTokens": 872, "costUsd": 0.586},
 "content": "# What I did\n\n| file | what |\n|---|---|\n| a.py | escaped |"}
END
esac
"""
TASK = "Escape user names in LDAP filters, wherever they come from, and add a test that shows it"

# So much later that all that the fixture did is as long ago, however long it took.
LATER = count(1_760_000_000_000 + int(3.5 * 3600 * 1000))

LISTS = """\
thread list --all
thread list --all --wide
thread list --status killed
ps
events
search filter
workflow list
workflow history demo
config list
remote list
"""

COMMANDS = """\
thread list --status waiting
agent trusted
thread start demo -p Another --agent AGENT
thread step @
thread show @
thread show @2
thread show @ --full --utc
thread read @4
thread read @4 --raw
thread logs @4
thread diff @4 @2
thread context @
thread graph @
thread pause @ -m later
thread resume @
thread patch @ {"n":1}
thread amend @ --max-steps 9
thread poke @
thread retry @
thread fork @4 --at 1
thread answer 01
thread kill @ -m enough
thread rm @ --yes
thread wait @
watch @4
run demo -p Third --agent AGENT
workflow show demo
workflow graph demo
workflow validate FILE
workflow rollback demo
config get agent
config set retries 2
remote add origin /nowhere.git
remote remove origin
agent trust ./x
agent untrust ./x
verify
push
fetch
thread
thread lits
ui --help
"""


@pytest.fixture
def person(uwf: Uwf) -> Uwf:
    """Return the program at a terminal, in a store with threads of every kind."""
    numbers = count(1)

    def new_id() -> ThreadId:
        return thread_id_at(uwf.session.now_ms(), next(numbers).to_bytes(10, "big"))

    bare = str(uwf.place / "bin")
    Path(bare).mkdir()
    environ = {**uwf.session.environ, "PATH": f"{bare}:{os.environ['PATH']}", "TERM": "dumb"}
    there = Uwf(uwf.place, uwf.session._replace(new_thread_id=new_id, environ=environ), uwf.capsys)
    there.agent(AGENT)
    there.agent(AGENT, name="x")
    agent = "./agent"
    there.json("workflow", "put", there.file())
    for agents in ([agent], [agent, "checker=human"], ["false"], [agent]):
        there("run", "demo", "-p", TASK, *[word for each in agents for word in ("--agent", each)])
    for task in ("日本", "Do it."):
        there.json("thread", "start", "demo", "-p", task, "--agent", agent)
    there.json("thread", "kill", "@2", "-m", "not needed")
    changed = DEMO.replace("Writes.", "Writes what is to be said.")
    there.json("workflow", "put", there.file(changed, name="changed.yaml"))
    return there


def screen(person: Uwf, line: str, columns: int) -> str:
    """Return what a command line prints at a terminal of that width."""
    environ = {**person.session.environ, "COLUMNS": str(columns)}
    words = [
        {"AGENT": "./agent", "FILE": person.file()}.get(word, word) for word in line.split(" ")
    ]
    ran = person(
        *words,
        stdout_is_tty=True,
        stderr_is_tty=True,
        output_format="text",
        environ=environ,
        now_ms=LATER.__next__,
    )
    shown = f"$ uwf {line}\n{ran.out}{ran.err}"
    return shown if not ran.status else f"{shown}? {ran.status}\n"


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_lists_fit_and_are_as_they_were(
    columns: int, person: Uwf, golden: Callable[[str, str], None]
) -> None:
    shown = [screen(person, line, columns) for line in LISTS.splitlines()]

    for each in shown:
        if "--wide" not in each:
            assert max(map(display_width, each.splitlines())) <= columns, each
    machine = screen(person, "agent list", columns)
    assert max(map(display_width, machine.splitlines())) <= columns, machine
    golden(f"screens/lists-{columns}.txt", steady("\n".join(shown), person))


def test_every_command_is_as_it_was(person: Uwf, golden: Callable[[str, str], None]) -> None:
    shown = [screen(person, line, 80) for line in COMMANDS.splitlines()]

    golden("screens/commands.txt", steady("\n".join(shown), person))
