"""The tools of the model: files in the work folder, a shell, and the thread.

A result has a bounded length and says what was left out; an error is a text for the model. A file
is changed as a whole or not at all. The shell is no sandbox: it starts in the work directory, with
a time limit and without our keys, but can do whatever the user can; no process outlives its call.
"""

import io
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import PurePath
from typing import Any, NamedTuple

from uwf_git.agentkit.llm.messages import ModelTool, ToolCall, ToolResult
from uwf_git.agentkit.turn import AskFailed
from uwf_git.agents.files import open_left_file, walk_down
from uwf_git.agents.nested import NestedRequest, NestedRun, run_nested
from uwf_git.engine.prompt import tell_branches
from uwf_git.engine.turn_context import AgentContext
from uwf_git.errors import BadUsage, Refused, UwfError
from uwf_git.model.text import cut_middle

# The work folder: the part of the file system that the file tools reach.
#
# Nothing outside is opened or changed, whatever the path or a symbolic link says, even one that
# is created meanwhile: a path is resolved first, then walked part by part without following
# links.

# Not files, even if the work folder is the root. It may lie below one of them, as in `/dev/shm`.
_NEVER = ("/proc/", "/sys/", "/dev/")

_LONGEST_SHOWN = 200


class WorkFolder(NamedTuple):
    """The folder *root*, an absolute path without symbolic links."""

    root: str

    kept: tuple[str, ...] = ()
    """Files and folders, without symbolic links in their paths, that are not written."""

    def locate(self, path: str) -> tuple[str, ...]:
        """Return the parts of *path* below the root; it may be absolute, and need not exist."""
        if not path.strip() or "\0" in path:
            raise Refused("a path is needed, as src/main.py")
        _encode(path)
        real = os.path.realpath(os.path.join(self.root, path))
        inside = self.root.rstrip("/") + "/"
        is_special = any(
            f"{real}/".startswith(each) and not self.root.startswith(each) for each in _NEVER
        )
        if is_special or not (real == self.root or real.startswith(inside)):
            shown = path[:_LONGEST_SHOWN]
            raise Refused(f"{shown} is not in the work directory, {self.root}")
        return tuple(part for part in real[len(self.root) :].split("/") if part)

    def open_file(self, path: str) -> int:
        """Open the file at *path* for reading; return its descriptor."""
        parts = self.locate(path)
        if os.path.isdir(os.path.join(self.root, *parts)):
            raise Refused(f"{path[:_LONGEST_SHOWN]} is a directory")
        with walk_down(self.root, parts[:-1]) as folder:
            return open_left_file(parts[-1], dir_fd=folder).descriptor

    def replace(self, path: str, content: bytes) -> bool:
        """Write *content* to *path* atomically; return whether the file is new.

        Missing folders are created; an existing file keeps its mode. Git directories are refused,
        whatever their name, and so are those that are *kept*: what is in them decides what the next
        git or uwf command runs.
        """
        parts = self.locate(path)
        if not parts:
            raise Refused(f"{path} is a directory")
        real = os.path.join(self.root, *parts)
        is_kept = any(real == each or real.startswith(f"{each}/") for each in self.kept)
        own = Refused(f"{path[:_LONGEST_SHOWN]} is git's own; files there are not written")
        is_gits = any(_is_git_dir(str(above)) for above in PurePath(self.root).parents)
        if is_kept or is_gits or any(part.lower() == ".git" for part in parts):
            raise own

        def check(folder: int) -> None:
            if _is_git_dir(folder):
                raise own

        with walk_down(self.root, parts[:-1], create=True, check=check) as folder:
            check(folder)
            mode = _mode(parts[-1], folder)
            _replace(parts[-1], content, folder, mode)
        return mode is None

    def list_below(self, path: str, *, depth: int, most: int) -> tuple[list[str], bool]:
        """List the names below *path*, folders with a /, links with an @; return if it is all."""
        parts = self.locate(path)
        top = os.path.join(self.root, *parts)
        found: list[str] = []
        waiting = [("", depth)]
        while waiting and len(found) <= most:
            inner, left = waiting.pop()
            try:
                with os.scandir(os.path.join(top, inner) if inner else top) as entries:
                    children = sorted(entries, key=lambda entry: entry.name)
            except OSError:
                if not inner:
                    raise
                # One that cannot be read, or has gone, does not hide the others.
                continue
            folders = []
            for entry in children:
                name = os.path.join(inner, entry.name)
                is_folder = entry.is_dir(follow_symlinks=False)
                found.append(name + ("@" if entry.is_symlink() else "/" if is_folder else ""))
                # The files of git are of no use to the model.
                if left > 1 and is_folder and entry.name != ".git":
                    folders.append((name, left - 1))
            waiting += folders[::-1]
        return found[:most], len(found) <= most


def open_work_folder(path: str, *, kept: Iterable[str] = ()) -> WorkFolder:
    """Return the work folder at *path*, but for *kept* files."""
    root = os.path.realpath(path)
    if not os.path.isdir(root):
        raise BadUsage(f"the work directory {path[:_LONGEST_SHOWN]} does not exist")
    return WorkFolder(root, tuple(map(os.path.realpath, kept)))


def _is_git_dir(folder: int | str) -> bool:
    """Check whether an open folder, or the one at a path, is a git directory, as git would."""
    if isinstance(folder, str):
        return os.path.isfile(f"{folder}/HEAD") and os.path.isdir(f"{folder}/objects")
    with suppress(OSError):
        head, objects = (os.stat(name, dir_fd=folder).st_mode for name in ("HEAD", "objects"))
        return stat.S_ISREG(head) and stat.S_ISDIR(objects)
    return False


def _mode(name: str, folder: int) -> int | None:
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise Refused(f"{name} is {'a directory' if stat.S_ISDIR(mode) else 'no ordinary file'}")
    return stat.S_IMODE(mode)


def _replace(name: str, content: bytes, folder: int, mode: int | None) -> None:
    beside = f".uwf-{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(beside, flags, 0o666, dir_fd=folder), "wb") as file:
            file.write(content)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=folder)
        raise


_MOST_DIGITS = 9


class ToolArguments:
    def __init__(self, tool: str, values: Mapping[str, Any]) -> None:
        self._tool = tool
        self._values = values

    def text(self, name: str, default: str | None = None) -> str:
        """Return the text *name*; raise Refused if it is missing without a *default*."""
        value = self._values.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise Refused(f"{self._tool} needs a text in {name!r}")
        return value

    def whole(self, name: str, default: int, *, most: int) -> int:
        """Return the whole number *name*, from 0 to *most*; it may be written as a text."""
        value = self._values.get(name)
        if value is None:
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, str) and value.isascii() and value.isdecimal():
            value = int(value[:_MOST_DIGITS])
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise Refused(f"{self._tool} needs a whole number in {name!r}")
        return min(value, most)


LONGEST_READ = 50_000
_MOST_LINES = 100_000
_MOST_ENTRIES = 1_000

_LARGEST_WRITE = 10 * 1024 * 1024
_BINARY_LOOK = 8 * 1024

_PATH = {"type": "string", "description": "Relative to the work directory, or absolute in it."}


def _tool(name: str, description: str, required: list[str], **properties: object) -> ModelTool:
    schema = {"type": "object", "properties": properties, "required": required}
    return ModelTool(name, description, {**schema, "additionalProperties": False})


FILE_TOOLS = (
    _tool(
        "read_file",
        "Read a text file. A long one comes in parts: go on with first_line.",
        ["path"],
        path=_PATH,
        first_line={"type": "integer", "description": "From 1 on; 1 if left out."},
        lines={"type": "integer", "description": "How many; as many as fit if left out."},
    ),
    _tool(
        "write_file",
        "Write a whole text file, new or in the place of one that is there.",
        ["path", "content"],
        path=_PATH,
        content={"type": "string"},
    ),
    _tool(
        "patch_file",
        "Replace a passage of a text file. `old` has to stand in it exactly once, letter for "
        "letter: take enough of what is around it.",
        ["path", "old", "new"],
        path=_PATH,
        old={"type": "string"},
        new={"type": "string"},
    ),
    _tool(
        "list_files",
        "List files and folders (with a /; symbolic links with an @).",
        [],
        path=_PATH,
        depth={"type": "integer", "description": "How many levels; 2 if left out."},
    ),
)


def read_file(folder: WorkFolder, arguments: ToolArguments) -> str:
    path = arguments.text("path")
    first = max(1, arguments.whole("first_line", 1, most=10**9))
    most = arguments.whole("lines", _MOST_LINES, most=_MOST_LINES)
    with open(folder.open_file(path), "rb") as raw:
        size = os.fstat(raw.fileno()).st_size
        if b"\0" in raw.peek(_BINARY_LOOK)[:_BINARY_LOOK]:
            raise Refused(f"{path} is no text, but {size:,} bytes of something else")
        # With its line ends unchanged, so that patch_file finds a passage that was read.
        with io.TextIOWrapper(raw, encoding="utf-8", errors="replace", newline="") as file:
            return _read_lines(file, first, most)


def write_file(folder: WorkFolder, arguments: ToolArguments) -> str:
    path, content = arguments.text("path"), arguments.text("content")
    is_new = folder.replace(path, _encode(content))
    lines = content.count("\n") + (not content.endswith("\n") and bool(content))
    return f"{'wrote the new file' if is_new else 'replaced'} {path}, {lines:,} lines"


def patch_file(folder: WorkFolder, arguments: ToolArguments) -> str:
    path, old, new = arguments.text("path"), arguments.text("old"), arguments.text("new")
    if not old:
        raise Refused("`old` is empty; write_file writes a whole file")
    with open(folder.open_file(path), "rb") as file:
        source = file.read(_LARGEST_WRITE + 1)
    if len(source) > _LARGEST_WRITE:
        raise Refused(f"{path} is larger than {_LARGEST_WRITE // 2**20} MiB")
    try:
        text = source.decode()
    except UnicodeDecodeError:
        raise Refused(f"{path} is not UTF-8; only text can be patched") from None
    count = text.count(old)
    if count != 1:
        where = "does not stand" if count == 0 else f"stands {count} times"
        advice = "read the file again" if count == 0 else "take more of what is around it"
        raise Refused(f"`old` {where} in {path}; {advice}. Nothing was changed")
    line = text.count("\n", 0, text.index(old)) + 1
    folder.replace(path, _encode(text.replace(old, new)))
    return f"changed {path} at line {line}"


def list_files(folder: WorkFolder, arguments: ToolArguments) -> str:
    path = arguments.text("path", ".")
    depth = max(1, arguments.whole("depth", 2, most=10))
    names, is_all = folder.list_below(path, depth=depth, most=_MOST_ENTRIES)
    if not names:
        return "(empty)"
    note = "" if is_all else f"\n[… only the first {_MOST_ENTRIES:,}; list a folder of them …]"
    return "\n".join(names) + note


def _read_lines(file: io.TextIOWrapper, first: int, most: int) -> str:
    """Return at most *most* lines from line *first*, up to LONGEST_READ characters."""
    parts: list[str] = []
    room = LONGEST_READ
    number = 1
    while room > 0 and number < first + most:
        # A line may be as long as the file, so it is read in pieces.
        piece = file.readline(room if number >= first else LONGEST_READ)
        if not piece:
            break
        if number >= first:
            parts.append(piece)
            room -= len(piece)
        number += piece.endswith("\n")
    if not parts:
        return (
            f"(there is no line {first}; the file has {number - 1:,})" if first > 1 else "(empty)"
        )
    if file.read(1):
        parts = _end_with_a_line(parts, number)
    return "".join(parts)


def _end_with_a_line(parts: list[str], number: int) -> list[str]:
    """Remove a last line that did not fit; the next part begins at line *number*."""
    is_cut = not parts[-1].endswith("\n")
    if is_cut and len(parts) == 1:
        return [*parts, f"\n[… line {number} is longer; first_line={number + 1} skips the rest …]"]
    whole = parts[:-1] if is_cut else parts
    return [*whole, f"[… the file goes on; first_line={number} gives more …]"]


def _encode(text: str) -> bytes:
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise Refused("the text holds half a surrogate pair, which no file can") from None
    if len(content) > _LARGEST_WRITE:
        raise Refused(f"that is more than {_LARGEST_WRITE // 2**20} MiB")
    return content


_DEFAULT_S = 120
_MOST_S = 1_800

LONGEST_OUTPUT = 30_000
_MAX_OUTPUT_BYTES = 64 * 1024 * 1024


SHELL_TOOL = _tool(
    "shell",
    "Run a command with /bin/sh in the work directory, and get its output and exit status. "
    "It has no terminal and no input.",
    ["command"],
    command={"type": "string"},
    timeout_s={
        "type": "integer",
        "description": f"The most seconds; {_DEFAULT_S} if left out, at most {_MOST_S}.",
    },
)


class Surroundings(NamedTuple):
    environ: Mapping[str, str]

    scratch: str | None
    """A folder for its outputs; None: a temporary one."""

    left_s: float
    """The seconds that are left for the whole question."""


def run_shell(folder: WorkFolder, arguments: ToolArguments, around: Surroundings) -> str:
    command = arguments.text("command")
    if not command.strip() or "\0" in command:
        raise Refused("shell needs a command")
    timeout_s = min(max(1, arguments.whole("timeout_s", _DEFAULT_S, most=_MOST_S)), around.left_s)
    with tempfile.TemporaryDirectory(prefix="uwf-shell-", dir=around.scratch) as outputs:
        request = NestedRequest(
            # Both outputs in one stream, in order, as on a terminal.
            argv=("/bin/sh", "-c", 'exec /bin/sh -c "$1" 2>&1', "sh", command),
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
            raise Refused(f"the command cannot be run: {error}") from error
    if run.outcome == "interrupted":
        raise AskFailed("interrupted", "react was interrupted while a command ran")
    return f"{_cut(run.stdout)}{_describe_end(run, timeout_s)}"


def _cut(output: bytes) -> str:
    """Keep the beginning and the end, where builds report errors."""
    whole = output.decode(errors="replace")
    text = cut_middle(whole, LONGEST_OUTPUT // 3, LONGEST_OUTPUT * 2 // 3)
    return text if not text or text.endswith("\n") else f"{text}\n"


def _describe_end(run: NestedRun, timeout_s: float) -> str:
    if run.outcome == "timed-out":
        return f"[stopped after {timeout_s:g} s]"
    if run.outcome == "too-much-output":
        return f"[stopped: more than {_MAX_OUTPUT_BYTES // 2**20} MiB of output]"
    return f"[exit status {run.exit_code}]"


_LONGEST_PART = 30_000
_LONGEST_META = 500


THREAD_TOOL = _tool(
    "fetch_thread",
    "Read the thread so far: the list of its steps, or with `step` one step whole.",
    [],
    step={"type": "integer", "description": "From 1 on; 0 is the task."},
    offset={"type": "integer", "description": "Characters to skip in a long one."},
)


def fetch_thread(context: AgentContext, arguments: ToolArguments) -> str:
    """Return the list of steps, or one step; raise Refused if there is no such step."""
    number = arguments.whole("step", -1, most=10**9)
    if number < 0:
        return _list_steps(context)
    if number > len(context.steps):
        raise Refused(f"the thread has {len(context.steps)} steps, and no step {number}")
    text = _show_step(context, number) if number else context.start.prompt
    offset = arguments.whole("offset", 0, most=10**9)
    part = text[offset : offset + _LONGEST_PART]
    end = offset + len(part)
    if end >= len(text):
        return part or f"(there are only {len(text):,} characters)"
    return f"{part}\n[… {len(text) - end:,} more characters; offset={end} gives them …]"


def _list_steps(context: AgentContext) -> str:
    steps = context.steps[-200:]
    first = len(context.steps) - len(steps) + 1
    lines = [
        f"{number} {step.role}, {len(step.content):,} characters of text, "
        f"meta {json.dumps(step.meta, ensure_ascii=False)[:_LONGEST_META]}"
        for number, step in enumerate(steps, first)
    ]
    note = [f"[… the first {first - 1} steps; ask for them by number …]"] if first > 1 else []
    task = f"0 the task, {len(context.start.prompt):,} characters"
    thread = f"thread {context.thread_id}, workflow {context.workflow.name}"
    return "\n".join([thread, task, *note, *lines])


def _show_step(context: AgentContext, number: int) -> str:
    step = context.steps[number - 1]
    heading = f"step {number}, {step.role}, by {step.agent}"
    said = step.content + tell_branches(step)
    return f"{heading}\nmeta: {json.dumps(step.meta, ensure_ascii=False)}\n\n{said}"


CHANGING = {"write_file", "patch_file", "shell"}
"""The tools that may change files."""


class Toolbox(NamedTuple):
    tools: tuple[ModelTool, ...]
    runs: Mapping[str, Callable[[ToolArguments], str]]

    def run(self, call: ToolCall) -> ToolResult:
        """Run *call*; an error becomes its result."""
        try:
            return ToolResult(call.id, self._run(call))
        except AskFailed:
            raise
        except UwfError as failure:
            problem = failure.message
        except OSError as error:
            shown = f"{error.filename}: " if isinstance(error.filename, str) else ""
            problem = shown + (error.strerror or str(error)).lower()
        except Exception as error:  # noqa: BLE001 (one call must not lose all turns before it)
            problem = f"{call.name} failed: {type(error).__name__}: {error}"
        return ToolResult(call.id, problem, is_error=True)

    def _run(self, call: ToolCall) -> str:
        run = self.runs.get(call.name)
        if run is None:
            names = ", ".join(self.runs)
            raise Refused(f"there is no tool {call.name!r:.80}, only {names}")
        if call.arguments is None:
            raise Refused(f"the arguments of {call.name} are no JSON object")
        return run(ToolArguments(call.name, call.arguments))


def build_toolbox(
    folder: WorkFolder,
    *,
    thread: Callable[[], AgentContext] | None,
    around: Callable[[], Surroundings] | None,
) -> Toolbox:
    """Build the toolbox; without *thread* it has no fetch_thread, without *around* no shell."""
    tools = list(FILE_TOOLS)
    runs: dict[str, Callable[[ToolArguments], str]] = {
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
