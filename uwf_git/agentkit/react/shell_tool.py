"""The shell tool: a command that the model runs.

It has a time limit, its output is cut, and none of its processes outlives the call. It does not see
our keys. It is no sandbox: it starts in the work directory, but can do whatever the user can.
``shell = false`` removes the tool.
"""

import os
import tempfile
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.agentkit.extraction.adapter import AskFailed
from uwf_git.agentkit.llm.messages import ModelTool
from uwf_git.agentkit.react.arguments import ToolArguments
from uwf_git.agentkit.react.work_folder import ToolFailed, WorkFolder
from uwf_git.agents.nested import NestedRequest, NestedRun, run_nested

_DEFAULT_S = 120
_MOST_S = 1_800

LONGEST_OUTPUT = 30_000
_MAX_OUTPUT_BYTES = 64 * 1024 * 1024

# Both outputs in one stream, in order, as on a terminal.
_TOGETHER = 'exec /bin/sh -c "$1" 2>&1'

SHELL_TOOL = ModelTool(
    "shell",
    "Run a command with /bin/sh in the work directory, and get its output and exit status. "
    "It has no terminal and no input.",
    {
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "timeout_s": {
                "type": "integer",
                "description": f"The most seconds; {_DEFAULT_S} if left out, at most {_MOST_S}.",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    },
)


class Surroundings(NamedTuple):
    """The environment of a command."""

    environ: Mapping[str, str]
    """Its environment variables."""

    scratch: str | None
    """A folder for its outputs; None: a temporary one."""

    left_s: float
    """The seconds that are left for the whole question."""


def run_shell(folder: WorkFolder, arguments: ToolArguments, around: Surroundings) -> str:
    """Run a command.

    Raises:
        ToolFailed: it cannot be run.
        AskFailed: a signal asked this process to end.
    """
    command = arguments.text("command")
    if not command.strip() or "\0" in command:
        raise ToolFailed("shell needs a command")
    timeout_s = min(max(1, arguments.whole("timeout_s", _DEFAULT_S, most=_MOST_S)), around.left_s)
    with tempfile.TemporaryDirectory(prefix="uwf-shell-", dir=around.scratch) as outputs:
        request = NestedRequest(
            argv=("/bin/sh", "-c", _TOGETHER, "sh", command),
            environment=around.environ,
            workdir=folder.root,
            given=b"",
            folder=os.path.join(outputs, "run"),
            timeout_s=timeout_s,
            max_output_bytes=_MAX_OUTPUT_BYTES,
        )
        try:
            run = run_nested(request)
        except (OSError, ValueError) as error:
            raise ToolFailed(f"the command cannot be run: {error}") from error
    if run.outcome == "interrupted":
        raise AskFailed("interrupted", "react was interrupted while a command ran")
    return f"{_cut(run.stdout)}{_describe_end(run, timeout_s)}"


def _cut(output: bytes) -> str:
    """Keep the beginning and the end, where builds report errors."""
    text = output.decode(errors="replace")
    if len(text) > LONGEST_OUTPUT:
        head, tail = LONGEST_OUTPUT // 3, LONGEST_OUTPUT * 2 // 3
        left_out = len(text) - head - tail
        text = f"{text[:head]}\n[… {left_out:,} characters left out …]\n{text[-tail:]}"
    return text if not text or text.endswith("\n") else f"{text}\n"


def _describe_end(run: NestedRun, timeout_s: float) -> str:
    if run.outcome == "timed-out":
        return f"[stopped after {timeout_s:g} s]"
    if run.outcome == "too-much-output":
        return f"[stopped: more than {_MAX_OUTPUT_BYTES // 2**20} MiB of output]"
    return f"[exit status {run.exit_code}]"
