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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from uwf_git.agentkit.running import LiveLog, run_as_agent
from uwf_git.agentkit.turn import AgentResult, parse_arguments
from uwf_git.agents.files import read_left_file
from uwf_git.agents.reply import BadJson, parse_strict_json
from uwf_git.agents.tool import ToolRequest, ToolRun, run_tool
from uwf_git.errors import AgentFailed, BadUsage
from uwf_git.model.text import parse_float

_LONGEST_META = 1024 * 1024

_HELP = """\
Usage: uwf-shell [--timeout SECONDS] 'COMMAND' THREAD-ID

Play a role with a shell command. `/bin/sh -c COMMAND` runs in the work directory;
what it prints is the content, and the meta is {"ok", "exitCode", "durationMs"}.
The engine appends the thread id; `-t THREAD-ID -r ROLE` is understood as well.

Example: uwf thread start release -p 1.4.0 --agent "tester=uwf-shell 'make test'"

A command that fails is an answer too: ok is false, and a workflow can route on it.
One that takes longer than SECONDS is stopped; its exitCode is 124, and timedOut is
true. A command that was killed by signal n has the exitCode 128 + n. Output beyond
1 MiB loses its middle, with a note.

The command may write a JSON object to the file named by $UWF_META: its fields join
the meta, and win. It finds the thread in $UWF_THREAD_ID and $UWF_REPO, so that
`uwf thread context "$UWF_THREAD_ID"` works in it.

The command belongs into the agent's command line, not into the prompt of a role:
you trust this one command, and not every script that a fetched workflow might hold.

EXIT STATUS: 0 the command has run, however it ended; 1 it could not be run, or
$UWF_META is no JSON object; 2 usage; 143 it was stopped from outside.
"""

_USAGE_STATUS = 2
_TIMED_OUT = 124


class Stopped(SystemExit):
    """SIGTERM arrived; the command has to end too."""


@dataclass(frozen=True, slots=True)
class ShellArguments:
    command: str
    timeout_s: float | None


def main() -> int:
    argv = sys.argv[1:]
    if argv[:1] in (["-h"], ["--help"]):
        sys.stdout.write(_HELP)
        return 0
    try:
        arguments = parse_shell_arguments(argv)
    except BadUsage as error:
        sys.stderr.write(f"error: {error.message}\nhint: {error.hint}\n")
        return _USAGE_STATUS
    signal.signal(signal.SIGTERM, _stop)
    return run_as_agent(lambda: play_command(arguments, os.environ))


def parse_shell_arguments(argv: Sequence[str]) -> ShellArguments:
    words = list(parse_arguments(argv).own)
    timeout_s = None
    if words and (words[0] == "--timeout" or words[0].startswith("--timeout=")):
        _, is_joined, text = words.pop(0).partition("=")
        timeout_s = _parse_timeout(text if is_joined else words.pop(0) if words else "")
    if len(words) != 1 or not words[0].strip() or words[0].startswith("--"):
        raise BadUsage(
            f"uwf-shell takes one command, not {len(words)} words",
            hint="put the command in quotes: uwf-shell 'make test'; see uwf-shell --help",
        )
    return ShellArguments(words[0], timeout_s)


def play_command(arguments: ShellArguments, environ: Mapping[str, str]) -> AgentResult:
    with _meta_file(environ.get("UWF_STEP_DIR")) as meta_file:
        request = ToolRequest(
            argv=("/bin/sh", "-c", arguments.command),
            environment={**environ, "UWF_META": str(meta_file)},
            timeout_s=arguments.timeout_s,
        )
        try:
            run = run_tool(request, on_output=LiveLog().add)
        except (OSError, ValueError) as error:
            raise AgentFailed(f"cannot run the command: {error}") from error
        meta = _meta_of_run(run) | read_meta(meta_file)
    return AgentResult(meta, _content_of_run(run, arguments.timeout_s))


def read_meta(file: Path) -> dict[str, Any]:
    """Read the fields that the command wrote to *file*; none if it wrote nothing."""
    try:
        left = read_left_file(str(file), most_bytes=_LONGEST_META, follows_links=True)
        text = left.content.decode()
        if left.size > _LONGEST_META:
            raise AgentFailed(f"the command's $UWF_META has more than {_LONGEST_META:,} bytes")
        fields = parse_strict_json(text) if text.strip() else {}
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise AgentFailed(f"the command's $UWF_META cannot be read: {error}") from error
    except BadJson as error:
        raise AgentFailed(f"the command's $UWF_META is {error.message}") from error
    if not isinstance(fields, dict):
        raise AgentFailed("the command's $UWF_META is JSON, but not an object")
    return fields


def _parse_timeout(text: str) -> float:
    seconds = parse_float(text)
    if not seconds:
        raise BadUsage(
            f"--timeout takes a number of seconds, not {text!r}",
            hint="for ten minutes: uwf-shell --timeout 600 'make test'",
        )
    return seconds


def _meta_of_run(run: ToolRun) -> dict[str, Any]:
    if run.outcome == "timed-out":
        ended: dict[str, Any] = {"ok": False, "exitCode": _TIMED_OUT, "timedOut": True}
    else:
        ended = {"ok": run.exit_code == 0, "exitCode": run.exit_code}
    return {**ended, "durationMs": run.duration_ms}


def _content_of_run(run: ToolRun, timeout_s: float | None) -> str:
    note = f"\n[… {run.left_out:,} bytes left out …]\n" if run.left_out else ""
    content = (run.head + note.encode() + run.tail).decode(errors="replace")
    if run.outcome == "timed-out":
        content += f"\n[stopped after {timeout_s:g} s]\n"
    return content


@contextmanager
def _meta_file(step_dir: str | None) -> Iterator[Path]:
    # The engine removes the step's directory, even if this process is killed.
    place = step_dir if step_dir and Path(step_dir).is_dir() else None
    with tempfile.TemporaryDirectory(prefix="uwf-shell-", dir=place) as directory:
        yield Path(directory) / "meta.json"


def _stop(number: int, _frame: FrameType | None) -> None:
    raise Stopped(128 + number)
