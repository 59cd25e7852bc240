"""Real terminals (pty) of several widths: nothing wraps, no id is cut, and a pipe is what it was.

Few processes, many screens: one shell for each width. What is printed is in test_screens.py.
"""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sysconfig
import termios
from pathlib import Path

import pytest
from programs import write_program

from uwf_git.cli.output.screen import display_width

SETUP = """
uwf init "$UWF_REPO"; uwf workflow put demo.yaml
uwf config set uwf.retries 1; uwf config set uwf.backoff 0.01
uwf run demo -p "A first task" --agent ./agent
uwf thread start demo -p "A second task, which is asked for at length" --agent human
uwf thread run @
"""
SCRIPT = r"""
uwf run demo -p "A third task that is long enough to be cut at each of the widths" --agent ./agent
uwf thread list --all
uwf thread list --all --utc
uwf events
uwf search task
uwf workflow history demo
uwf config list
uwf thread start demo -p "Never done" --agent ./slow > /dev/null
uwf thread run @ > /dev/null 2>&1 &
until [ -s logged ]; do sleep 0.02; done
uwf ps
uwf thread list
touch go; wait; rm go logged
echo "== read"; uwf thread read @2
echo "== agent"; UWF_THREAD_ID=x uwf thread list --limit 1 2> /dev/null
uwf thread list --all | cat > piped
"""
FLOW = """\
name: demo
description: Write until somebody is content, and say so in a line longer than most terminals are.
roles:
  writer: {description: Writes., systemPrompt: Write.}
  the-reviewer-with-a-long-name: {description: Reviews., systemPrompt: Review.}
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: the-reviewer-with-a-long-name}
  - {from: the-reviewer-with-a-long-name, to: $END}
"""
AGENT = r"""#!/bin/sh
echo "reading 日本 and a lot of other files, one after the other, until the line is longer" >&2
sleep 0.2
[ "$UWF_ATTEMPT" != 1 ] || { echo "rate limited: 429 from the model, as so often" >&2; exit 7; }
echo '{"meta": {}, "content": "日本 said at some length, so that it has to be cut everywhere, too"}'
"""
SLOW = r"""#!/bin/sh
echo "working on item 43 of 300, which is described here at length, 日本 included, to be cut" >&2
echo yes > logged
until [ -e go ]; do sleep 0.02; done
exit 1
"""
SGR = re.compile(r"\x1b\[[0-9;]*m")
THREAD = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{2,}…?")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a store, agents, a thread that has ended and one that waits."""
    folder = tmp_path_factory.mktemp("terminal")
    (folder / "demo.yaml").write_text(FLOW)
    for name, script in (("agent", AGENT), ("slow", SLOW)):
        write_program(folder / name, script)
    command = ["/bin/sh", "-ec", SETUP]
    subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, check=True)
    return folder


def environment(folder: Path) -> dict[str, str]:
    """Return the variables of a person at a terminal in *folder*."""
    scripts = sysconfig.get_path("scripts")
    own = {"UWF_REPO": str(folder / "store.git"), "TERM": "xterm"}
    path = f"{scripts}{os.pathsep}{os.environ['PATH']}"
    inherited = {name: each for name, each in os.environ.items() if name != "COLUMNS"}
    return {**inherited, **own, "PATH": path}


def type_at_terminal(script: str, folder: Path, columns: int) -> str:
    """Run a shell script at a terminal, and return all that was written there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    shell = subprocess.Popen(
        ["/bin/sh", "-ec", script],
        cwd=folder,
        env=environment(folder),
        start_new_session=True,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 65536):
            seen += chunk
    except OSError:
        # The other end is closed.
        pass
    os.close(ours)
    assert shell.wait() == 0, seen.decode()
    return seen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_nothing_wraps_and_ids_can_be_copied(columns: int, place: Path) -> None:
    seen = type_at_terminal(SCRIPT, place, columns)

    shown, _, as_agent = seen.partition("== agent\n")
    lists, _, read = shown.partition("== read\n")
    drawn = [each for line in lists.split("\n") for each in re.split(r"\r(?:\x1b\[2K)?", line)]
    told = [SGR.sub("", line) for line in drawn if "next:" not in line]
    assert [line for line in told if display_width(line) > columns] == []
    assert max(map(display_width, SGR.sub("", read).split("\n"))) <= columns
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", "".join(told))

    documents = json.loads((place / "piped").read_bytes())
    ids = [document["thread"] for document in documents]
    for found in THREAD.findall("\n".join(told)):
        assert len([each for each in ids if each.startswith(found)]) == 1, found
    compact = json.dumps(documents, separators=(",", ":"), ensure_ascii=False) + "\n"
    assert (place / "piped").read_text() == compact
    assert as_agent.startswith('[\n  {\n    "thread": ')

    assert "\x1b[32m✓\x1b[0m  1 writer" in seen
    assert "↻" in seen
    assert re.search(r"writer +.*workin", SGR.sub("", seen))
    assert "● running" in seen
    assert "? waiting" in seen
