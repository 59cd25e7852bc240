"""The file tools of the model: read, write, patch and list, in the work folder.

A result has a bounded length and says what was left out. A file is changed as a whole or not at
all.
"""

import io
import os

from uwf_git.agentkit.llm.messages import ModelTool
from uwf_git.agentkit.react.arguments import ToolArguments
from uwf_git.agentkit.react.work_folder import ToolFailed, WorkFolder

LONGEST_READ = 50_000
_MOST_LINES = 100_000
_MOST_ENTRIES = 1_000
_DEEPEST_LIST = 10
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
    """Return a part of a file."""
    path = arguments.text("path")
    first = max(1, arguments.whole("first_line", 1, most=10**9))
    most = arguments.whole("lines", _MOST_LINES, most=_MOST_LINES)
    with open(folder.open_file(path), "rb") as raw:
        size = os.fstat(raw.fileno()).st_size
        if b"\0" in raw.peek(_BINARY_LOOK)[:_BINARY_LOOK]:
            raise ToolFailed(f"{path} is no text, but {size:,} bytes of something else")
        # With its line ends unchanged, so that patch_file finds a passage that was read.
        with io.TextIOWrapper(raw, encoding="utf-8", errors="replace", newline="") as file:
            return _read_lines(file, first, most)


def write_file(folder: WorkFolder, arguments: ToolArguments) -> str:
    """Write a file."""
    path, content = arguments.text("path"), arguments.text("content")
    is_new = folder.replace(path, _encode(content))
    lines = content.count("\n") + (not content.endswith("\n") and bool(content))
    return f"{'wrote the new file' if is_new else 'replaced'} {path}, {lines:,} lines"


def patch_file(folder: WorkFolder, arguments: ToolArguments) -> str:
    """Replace one passage of a file."""
    path, old, new = arguments.text("path"), arguments.text("old"), arguments.text("new")
    if not old:
        raise ToolFailed("`old` is empty; write_file writes a whole file")
    with open(folder.open_file(path), "rb") as file:
        source = file.read(_LARGEST_WRITE + 1)
    try:
        text = source.decode()
    except UnicodeDecodeError:
        raise ToolFailed(f"{path} is not UTF-8; only text can be patched") from None
    count = text.count(old)
    if count != 1:
        where = "does not stand" if count == 0 else f"stands {count} times"
        advice = "read the file again" if count == 0 else "take more of what is around it"
        raise ToolFailed(f"`old` {where} in {path}; {advice}. Nothing was changed")
    line = text.count("\n", 0, text.index(old)) + 1
    folder.replace(path, _encode(text.replace(old, new)))
    return f"changed {path} at line {line}"


def list_files(folder: WorkFolder, arguments: ToolArguments) -> str:
    """List the files below a folder."""
    path = arguments.text("path", ".")
    depth = max(1, arguments.whole("depth", 2, most=_DEEPEST_LIST))
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
    is_within = True
    while room > 0 and number < first + most:
        # A line may be as long as the file, so it is read in pieces.
        piece = file.readline(room if number >= first else LONGEST_READ)
        if not piece:
            is_within = False
            break
        if number >= first:
            parts.append(piece)
            room -= len(piece)
        number += piece.endswith("\n")
    if not parts:
        return (
            f"(there is no line {first}; the file has {number - 1:,})" if first > 1 else "(empty)"
        )
    if is_within and file.read(1):
        parts = _end_with_a_line(parts, number)
    return "".join(parts)


def _end_with_a_line(parts: list[str], number: int) -> list[str]:
    """Remove a last line that did not fit; the next part begins at line *number*."""
    if parts[-1].endswith("\n"):
        whole = parts
    elif len(parts) > 1:
        whole = parts[:-1]
    else:
        return [*parts, f"\n[… line {number} is longer; first_line={number + 1} skips the rest …]"]
    return [*whole, f"[… the file goes on; first_line={number} gives more …]"]


def _encode(text: str) -> bytes:
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise ToolFailed("the text holds half a surrogate pair, which no file can") from None
    if len(content) > _LARGEST_WRITE:
        raise ToolFailed(f"that is more than {_LARGEST_WRITE // 2**20} MiB")
    return content
