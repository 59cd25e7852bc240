"""uwf-shell: a shell command plays a role.

Any end of the command is an answer, on which a workflow can route. The agent fails only if the
command cannot be run, or its meta cannot be read. The command is part of the agent's command line,
never of a role's prompt: trusting an agent command must not mean trusting every script in a fetched
workflow.
"""

import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from uwf_git.agentkit.running import LiveLog, make_main, run_as_agent
from uwf_git.agentkit.turn import AgentResult, parse_arguments, parse_seconds
from uwf_git.agents.files import read_json_object
from uwf_git.agents.process import ToolRequest, run_tool
from uwf_git.errors import AgentFailed, BadUsage

_LONGEST_META = 1024 * 1024

_HELP = """\
Usage: uwf-shell [--timeout SECONDS] 'COMMAND' THREAD-ID

Play a role with a shell command. `/bin/sh -c COMMAND` runs in the work directory;
what it prints is the content, and the meta is {"ok", "exitCode"}.
The engine appends the thread id; `-t THREAD-ID -r ROLE` is understood as well.

Example: uwf thread start release -p 1.4.0 --agent "tester=uwf-shell 'make test'"

A command that fails is an answer too: ok is false, and a workflow can route on it.
One that takes longer than SECONDS is stopped; its exitCode is 124, and timedOut is
true. Without --timeout it has no limit of its own. A command that was killed by
signal n has the exitCode 128 + n. Output beyond 1 MiB loses its middle, with a note.

The command may write a JSON object to the file named by $UWF_META: its fields join
the meta, and win. It finds the thread in $UWF_THREAD_ID and $UWF_REPO, so that
`uwf thread context "$UWF_THREAD_ID"` works in it.

The command belongs into the agent's command line, not into the prompt of a role:
you trust this one command, and not every script that a fetched workflow might hold.

EXIT STATUS: 0 the command has run, however it ended; 1 it could not be run, or
$UWF_META is no JSON object; 2 usage; 143 it was stopped from outside.
"""


def _play(argv: list[str]) -> int:
    command, timeout_s = parse_shell_arguments(argv)
    # The command has to end too.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    return run_as_agent(lambda: play_command(command, timeout_s, os.environ))


main = make_main(_HELP, _play)


def parse_shell_arguments(argv: Sequence[str]) -> tuple[str, float | None]:
    """Return the command, and the most seconds that it may take."""
    words = list(parse_arguments(argv).own)
    timeout_s = None
    if words and (words[0] == "--timeout" or words[0].startswith("--timeout=")):
        _, is_joined, text = words.pop(0).partition("=")
        given = text if is_joined else words.pop(0) if words else ""
        timeout_s = parse_seconds({"timeout": given}, "timeout")
    if len(words) != 1 or not words[0].strip() or words[0].startswith("--"):
        raise BadUsage(
            f"uwf-shell takes one command, not {len(words)} words",
            hint="put the command in quotes: uwf-shell 'make test'; see uwf-shell --help",
        )
    return words[0], timeout_s


def play_command(command: str, timeout_s: float | None, environ: Mapping[str, str]) -> AgentResult:
    # The engine removes the step's directory, even if this process is killed.
    step_dir = environ.get("UWF_STEP_DIR")
    place = step_dir if step_dir and os.path.isdir(step_dir) else None
    with tempfile.TemporaryDirectory(prefix="uwf-shell-", dir=place) as folder:
        meta_file = os.path.join(folder, "meta.json")
        request = ToolRequest(
            argv=("/bin/sh", "-c", command),
            environment={**environ, "UWF_META": meta_file},
            timeout_s=timeout_s,
        )
        try:
            run = run_tool(request, on_output=LiveLog().add)
        except (OSError, ValueError) as error:
            raise AgentFailed(f"cannot run the command: {error}") from error
        given = read_json_object(
            meta_file,
            most_bytes=_LONGEST_META,
            name="the command's $UWF_META",
            error=AgentFailed,
            may_be_empty=True,
        )
    note = f"\n[… {run.left_out:,} bytes left out …]\n" if run.left_out else ""
    content = (run.head + note.encode() + run.tail).decode(errors="replace")
    meta: dict[str, Any] = {"ok": run.exit_code == 0, "exitCode": run.exit_code}
    if run.outcome == "timed-out":
        meta = {"ok": False, "exitCode": 124, "timedOut": True}
        content += f"\n[stopped after {timeout_s:g} s]\n"
    return AgentResult({**meta, **given}, content)
