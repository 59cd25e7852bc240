"""The tools of one question, and calls of them; a call that fails tells the model why."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from uwf_git.agentkit.context import AgentContext
from uwf_git.agentkit.extraction.adapter import AskFailed
from uwf_git.agentkit.llm.messages import ModelTool, ToolCall, ToolResult
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

RunTool = Callable[[ToolArguments], str]

_CHANGING = {"write_file", "patch_file"}


@dataclass(frozen=True, slots=True)
class Toolbox:
    """Tools by their names."""

    tools: tuple[ModelTool, ...]
    _runs: Mapping[str, RunTool]

    def run(self, call: ToolCall) -> ToolResult:
        """Run *call*; an error becomes its result.

        Raises:
            AskFailed: a signal asked this process to end.
        """
        try:
            return ToolResult(call.id, self._run(call))
        except AskFailed:
            raise
        except UwfError as failure:
            problem = failure.message
        except OSError as error:
            shown = f"{error.filename}: " if isinstance(error.filename, str) else ""
            problem = shown + (error.strerror or str(error)).lower()
        return ToolResult(call.id, problem, is_error=True)

    def _run(self, call: ToolCall) -> str:
        run = self._runs.get(call.name)
        if run is None:
            names = ", ".join(self._runs)
            raise ToolFailed(f"there is no tool {call.name!r:.80}, only {names}")
        if call.arguments is None:
            raise ToolFailed(f"the arguments of {call.name} are no JSON object")
        return run(ToolArguments(call.name, call.arguments))

    def changes(self, call: ToolCall) -> bool:
        """Return whether *call* is of a tool that changes files."""
        return call.name in _CHANGING


def build_toolbox(
    folder: WorkFolder,
    *,
    thread: Callable[[], AgentContext] | None,
    around: Callable[[], Surroundings] | None,
) -> Toolbox:
    """Build the toolbox; without *thread* it has no fetch_thread, without *around* no shell."""
    tools = list(FILE_TOOLS)
    runs: dict[str, RunTool] = {
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
