"""Text for people: characters made visible, times and durations."""

import math
import re
import shlex
from datetime import UTC, datetime

# Escape the characters in foreign text that a terminal or a page would obey instead of showing.
#
# JSON on standard output does not pass here: render_json escapes without changing its values.

# C0 and C1 controls (ESC begins every terminal command), DEL, marks that change the direction of
# writing (https://trojansource.codes), line ends other than newline, lone surrogates, and the two
# codes that no XML document may hold.
_CONTROL = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    r"\ud800-\udfff\ufffe\uffff"
)
# The patterns are strings: most commands meet nothing that makes it worth while to compile them.

_SPACES = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
_SPACES += "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


def visible_line(text: str) -> str:
    """Return *text* on one line: controls, newlines and tabs are escaped, as in Python."""
    if text.isascii() and text.isprintable():
        return text
    return re.sub(f"[{_CONTROL}\t\n]", _spell, text)


def visible_block(text: str) -> str:
    """Return *text* with its lines and tabs, and every other control escaped."""
    return re.sub(f"[{_CONTROL}]", _spell, text.replace("\r\n", "\n"))


def without_colours(text: str) -> str:
    """Return *text* without the sequences that colour it; every other control stays."""
    # ECMA-48, "select graphic rendition": colours and the like.
    return re.sub(r"\x1b\[[0-9;:]{0,40}m", "", text)


def one_line(message: str) -> str:
    """Return a message as a single line: its lines are joined."""
    return visible_line(re.sub(r"\s*\n\s*", " ", message.strip()))


def name_store(text: str, path: str) -> str:
    """Return *text*, in which the commands that it advises name the store at *path*."""
    # `uwf init PATH` names its store itself.
    advised = "(?:^|(?<=`)|(?<=next: ))(uwf|json-cas) (?!init |--repo )"
    return re.sub(advised, lambda found: f"{found[0]}--repo {quote_path(path)} ", text)


def quote_path(path: str) -> str:
    """Return *path* as a word for a shell, its bytes in octal where it cannot be shown."""
    if path.isprintable():
        return shlex.quote(path)
    try:
        spelled = path.encode(errors="surrogateescape").decode("latin-1")
    except UnicodeEncodeError:
        # No file has such a name.
        return shlex.quote(path)
    octal = re.sub(r"[^ -&(-\[\]-~]", lambda found: f"\\{ord(found[0]):03o}", spelled)
    return f"$'{octal}'"


def cut(text: str, most: int) -> str:
    """Return *text*, with an ellipsis at its end if it had more than *most* characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def first_line(text: str) -> str:
    """Return the first line of *text* that is not empty, shortened; "" for an empty text."""
    for line in text[:10_000].splitlines():
        told = line.strip(_SPACES).lstrip("# ")
        if told:
            return cut(told, 200)
    return ""


def cut_middle(text: str, head: int, tail: int) -> str:
    """Return *text* with at most *head* characters of its beginning and *tail* of its end."""
    left_out = len(text) - head - tail
    if left_out <= 0:
        return text
    return f"{text[:head]}\n[… {left_out:,} characters left out …]\n{text[-tail:]}"


def _spell(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


# Times and durations as people read them.

_MS = 1000
_MINUTE_S = 60
_HOUR_S = 60 * _MINUTE_S

UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}
"""Units of time that people type after a number, in seconds."""

_DURATION = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([smhdw]?)")


def parse_float(text: str) -> float | None:
    """Return the number that *text* is, if it is finite and not below 0; else None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def plain_key(key: str) -> str:
    """Return *key* as it is compared: `max-tokens`, `maxTokens` and `MAX_TOKENS` are the same."""
    return key.replace("-", "").replace("_", "").lower()


def parse_duration_ms(text: str) -> int | None:
    """Return the milliseconds that *text* spells (`90`, `2.5m`); None if it spells none."""
    match = _DURATION.fullmatch(text)
    return None if match is None else round(float(match[1]) * UNITS_S[match[2] or "s"] * _MS)


def render_time(time_ms: int) -> str:
    """Write milliseconds since 1970 as a UTC date and time, or as a number beyond the calendar."""
    try:
        return datetime.fromtimestamp(time_ms / _MS, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms after 1970"


def render_duration(duration_ms: int) -> str:
    """Write milliseconds for people: `0.3 s`, `1 min 05 s`, `2 h 00 min`."""
    if duration_ms < _MINUTE_S * _MS:
        return f"{duration_ms / _MS:.1f} s"
    seconds = duration_ms // _MS
    if seconds < _HOUR_S:
        return f"{seconds // _MINUTE_S} min {seconds % _MINUTE_S:02} s"
    return f"{seconds // _HOUR_S} h {seconds % _HOUR_S // _MINUTE_S:02} min"


# The output of checks in the log of a turn: a heading with the command, then what it printed.

CHECK = "check"
"""The kind of a failed attempt whose answer a check refused."""


def write_section(command: str, output: bytes) -> bytes:
    """Return what a check adds to the log; it begins on a line of its own."""
    heading = f"\n{_heading(command)}\n".encode(errors="replace")
    ending = b"" if not output or output.endswith(b"\n") else b"\n"
    return heading + output + ending


def find_last_output(log: str, commands: tuple[str, ...]) -> str:
    places = [(log.rfind(f"\n{_heading(each)}\n"), each) for each in commands]
    place, command = max(places, default=(-1, ""))
    return "" if place < 0 else log[place + len(_heading(command)) + 2 :]


def find_outputs(log: str, commands: tuple[str, ...]) -> str:
    """Return what the checks of an answer printed, each with its heading; "" if nothing."""
    headings = [f"\n{_heading(each)}\n" for each in commands]
    end = len(log)
    told: list[str] = []
    for heading in reversed(headings):
        place = log.rfind(heading, 0, end)
        if place >= 0:
            section = log[place + 1 : end]
            told += [section] if section[len(heading) - 1 :].strip() else []
            # The line break before a heading belongs to it.
            end = place + 1
    return "\n".join(each.strip("\n") for each in reversed(told))


def _heading(command: str) -> str:
    return f"$ {' '.join(command.split())}"


# The line of an agent's log that says why it failed.

ERROR_PREFIX, HINT_PREFIX = "error: ", "hint: "
"""How our own programs, and the kit's agents, begin the lines of an error."""

# What a program that crashed prints below its error: node's last line and advice, the calls that
# led there (node, Java, Ruby), and Rust's advice.
_BELOW_AN_ERROR = re.compile(
    r"Node\.js v\d[\d.]*$|\(Use `node --trace|note: run with `RUST_BACKTRACE"
    r"|\s+(at|from) \S|\s*\.\.\. \d+ more$"
)
_NODE = re.compile(r"Node\.js v\d[\d.]*$")
# node marks the place in the program, then prints the error.
_CARETS = re.compile(r"\s*\^+$")


def find_error_line(log: str) -> str:
    """Return the line of *log* that says why the program ended: the error, or the last line."""
    lines = [
        line.rstrip()
        for line in log.splitlines()
        if line.strip() and not line.startswith(HINT_PREFIX)
    ]
    if lines and _NODE.match(lines[-1]):
        marks = [index for index, line in enumerate(lines) if _CARETS.match(line)]
        lines = lines[: marks[-1] + 2] if marks and marks[-1] + 2 < len(lines) else lines
    for line in reversed(lines):
        if not _BELOW_AN_ERROR.match(line):
            return first_line(line.removeprefix(ERROR_PREFIX))[:300]
    return ""


def render_size(size_bytes: int) -> str:
    """Return a size as git config spells it, rounded up: 5 bytes, 12k, 101m."""
    for unit, letter in ((1024**3, "g"), (1024**2, "m"), (1024, "k")):
        if size_bytes >= unit:
            return f"{-(-size_bytes // unit)}{letter}"
    return f"{size_bytes} bytes"
