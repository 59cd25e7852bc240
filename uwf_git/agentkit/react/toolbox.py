"""The toolbox: the tools that one turn of react has, and a call of any of them.

Owns: which tools there are, and that whatever a call does, it has an outcome in words.
Knows nothing of: the loop, endpoints.
Always true: a call that fails tells the model why; no call takes us down with it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from uwf_git.agentkit.adapter import NoAnswer
from uwf_git.agentkit.context import AgentContext
from uwf_git.agentkit.model_words import Call, Outcome, Tool
from uwf_git.agentkit.react.arguments import ToolArguments
from uwf_git.agentkit.react.file_tools import (
    FILE_TOOLS,
    list_files,
    patch_file,
    read_file,
    write_file,
)
from uwf_git.agentkit.react.shell_tool import SHELL_TOOL, Surroundings, run_shell
from uwf_git.agentkit.react.thread_tool import THREAD_TOOL, fetch_thread
from uwf_git.agentkit.react.work_folder import ToolFailed, WorkFolder
from uwf_git.errors import UwfError

Run = Callable[[ToolArguments], str]

_CHANGING = {"write_file", "patch_file"}


@dataclass(frozen=True, slots=True)
class Toolbox:
    """Tools by their names."""

    tools: tuple[Tool, ...]
    _runs: Mapping[str, Run]

    def run(self, call: Call) -> Outcome:
        """Run *call*.

        Raises:
            NoAnswer: somebody asked us to end meanwhile.
        """
        try:
            return Outcome(call.id, self._run(call))
        except NoAnswer:
            raise
        except UwfError as failure:
            problem = failure.message
        except OSError as error:
            shown = f"{error.filename}: " if isinstance(error.filename, str) else ""
            problem = shown + (error.strerror or str(error)).lower()
        return Outcome(call.id, problem, is_error=True)

    def _run(self, call: Call) -> str:
        run = self._runs.get(call.name)
        if run is None:
            names = ", ".join(self._runs)
            raise ToolFailed(f"there is no tool {call.name!r:.80}, only {names}")
        if call.arguments is None:
            raise ToolFailed(f"the arguments of {call.name} are no JSON object")
        return run(ToolArguments(call.name, call.arguments))

    def changes(self, call: Call) -> bool:
        """Tell whether *call* is of a tool that changes files."""
        return call.name in _CHANGING


def build_toolbox(
    folder: WorkFolder,
    *,
    thread: Callable[[], AgentContext] | None,
    around: Callable[[], Surroundings] | None,
) -> Toolbox:
    """Build the toolbox; without *thread* there is no thread to read, without *around* no shell."""
    tools = list(FILE_TOOLS)
    runs: dict[str, Run] = {
        "read_file": partial(read_file, folder),
        "write_file": partial(write_file, folder),
        "patch_file": partial(patch_file, folder),
        "list_files": partial(list_files, folder),
    }
    if around is not None:
        tools.append(SHELL_TOOL)
        runs["shell"] = lambda arguments: run_shell(folder, arguments, around())
    if thread is not None:
        tools.append(THREAD_TOOL)
        runs["fetch_thread"] = lambda arguments: fetch_thread(thread(), arguments)
    return Toolbox(tuple(tools), runs)
