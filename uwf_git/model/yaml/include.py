"""Includes: the other files of one YAML document.

Each file is read once, so the bytes that are stored are those that were parsed. A cycle is an
error.
"""

import json
import re
from collections.abc import Callable

from uwf_git.model.yaml.include_path import CannotInclude, resolve_include

__all__ = ["CannotInclude", "IncludedNotJson", "Includes"]

ReadFile = Callable[[str], bytes]
"""Returns the file at a path below the workflow file's folder, or raises ``CannotInclude``."""

MAX_FILES = 100
MAX_FILE_BYTES = 1024 * 1024
MAX_ALL_BYTES = 8 * 1024 * 1024
MAX_NESTED = 10

_YAML = (".yaml", ".yml")
_JSON = ".json"
_NOT_TEXT = re.compile("[\0-\x08\x0b\x0e-\x1f\x7f]")
# An escaped backslash first, so that what follows it is not read as an escape.
_PAIR = re.compile(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|\\.", re.IGNORECASE)


class IncludedNotJson(CannotInclude):
    """A file that ends in .json is not JSON."""

    code = "included-not-json"

    def __init__(self, problem: str, *, line: int | None) -> None:
        super().__init__(problem)
        self.line = line


class Includes:
    """The files that a document includes, read on demand."""

    def __init__(self, read: ReadFile, *, name: str = "") -> None:
        """*name* is the document's own file name: including that is a cycle."""
        self._read = read
        self.name = name
        self.files: dict[str, bytes] = {}
        """The content of each file by its path from the document's folder."""

    def resolve(self, text: str, chain: tuple[str, ...]) -> str:
        """Return the path that *text* means in the last file of *chain*, the files that led there.

        Raises:
            CannotInclude: no such file may be included there.
        """
        path = resolve_include(text, inside=chain[-1])
        if path in chain:
            round_trip = " → ".join((*chain[chain.index(path) :], path))
            raise CannotInclude(f"it would include itself: {round_trip}")
        if len(chain) > MAX_NESTED:
            raise CannotInclude(f"files include files more than {MAX_NESTED} levels deep")
        return path

    def read(self, path: str) -> bytes:
        """Return the content of the file at *path*.

        Raises:
            CannotInclude: it cannot be read, or exceeds a limit.
        """
        known = self.files.get(path)
        if known is not None:
            return known
        if len(self.files) >= MAX_FILES:
            raise CannotInclude(f"one workflow includes at most {MAX_FILES} files")
        content = self._read(path)
        if len(content) > MAX_FILE_BYTES:
            raise CannotInclude(f"it is larger than {_mib(MAX_FILE_BYTES)}")
        if sum(map(len, self.files.values())) + len(content) > MAX_ALL_BYTES:
            raise CannotInclude(f"all included files are larger than {_mib(MAX_ALL_BYTES)}")
        self.files[path] = content
        return content


def is_yaml(path: str) -> bool:
    """Check whether the file at *path* is YAML, which may include other files."""
    return path.lower().endswith(_YAML)


def is_json(path: str) -> bool:
    """Check whether the file at *path* is JSON."""
    return path.lower().endswith(_JSON)


def decode_text(content: bytes) -> str:
    """Decode a file that is neither YAML nor JSON.

    Lines end in LF, as in a block of YAML, so a checkout with CR LF means the same.

    Raises:
        CannotInclude: it is not text.
    """
    try:
        text = content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise CannotInclude(f"it is not UTF-8 text (byte {error.start})") from None
    if strange := _NOT_TEXT.search(text):
        raise CannotInclude(f"it is not text: it has the character U+{ord(strange[0]):04X}")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def json_as_yaml(content: bytes) -> str:
    """Convert a JSON file to YAML with the same meaning on the same lines.

    YAML accepts JSON except for two things: tabs between the parts, and surrogate pairs.

    Raises:
        IncludedNotJson: the file is not JSON.
    """
    try:
        text = content.decode().removeprefix("\ufeff")
        json.loads(text, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise IncludedNotJson("the file is not UTF-8 text", line=line) from None
    except json.JSONDecodeError as error:
        raise IncludedNotJson(f"not JSON: {error.msg.lower()}", line=error.lineno) from None
    except RecursionError:
        raise IncludedNotJson(
            "not JSON that can be read: it is nested too deeply", line=None
        ) from None
    except ValueError:
        # Python refuses to read integers of more than 4,300 digits.
        raise IncludedNotJson(
            "not JSON that can be read: a number has too many digits", line=None
        ) from None
    # A tab within a string of JSON is an escape.
    return _PAIR.sub(_join_pair, text.replace("\t", " "))


def _refuse_constant(name: str) -> None:
    raise IncludedNotJson(f"not JSON: {name} is a number that JSON does not have", line=None)


def _join_pair(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[0]
    high, low = int(match[1], 16) - 0xD800, int(match[2], 16) - 0xDC00
    return f"\\U{0x10000 + (high << 10) + low:08x}"


def _mib(size_bytes: int) -> str:
    return f"{size_bytes // (1024 * 1024)} MiB"
