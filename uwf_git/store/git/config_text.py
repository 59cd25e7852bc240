"""Parse and edit the text of git config files; comments and other lines stay as they are.

dulwich is not used: its parser loses the line after a comment that ends in a backslash, and its
writer loses all comments.
Source: git-config(1), "CONFIGURATION FILE"; git's config.c, git_parse_source.
"""

import re
from collections.abc import Callable, Container, Iterator
from typing import Literal, NamedTuple

_SPACES = " \t\r"
_BASE = re.compile(r"[A-Za-z0-9.-]*")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_PLAIN = re.compile(r'[^\\"#; \t\r\n]+')
_QUOTED = re.compile(r'[^\\"\r\n]+')
_SUBSECTION = re.compile(r'"((?:[^"\\\n]|\\[^\n])*)"\]')
_ESCAPED = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "\\": "\\", '"': '"', "\n": ""}


class ConfigItem(NamedTuple):
    """A section header, a setting or a comment, and its place in the text."""

    kind: Literal["section", "setting", "comment"]
    name: str
    """As from ``normal_name``; a section's has no last part, a comment's is ""."""

    value: str | None
    """None: a setting without ``=``, which means true."""

    start: int
    end: int
    """After its newline; of a header after the ``]``."""


def normal_name(name: str) -> str:
    """Return *name* as git compares it: section and last part in lower case."""
    section, dot, rest = name.partition(".")
    subsection, dot2, key = rest.rpartition(".")
    return f"{section.lower()}{dot}{subsection}{dot2}{key.lower()}"


def scan_config(text: str) -> Iterator[ConfigItem]:
    """Yield the items of a config file, in order.

    Raises:
        ValueError: git could not read it; the message has the line.
    """
    at = 1 if text.startswith("\ufeff") else 0
    section: str | None = None
    while at < len(text):
        start = at
        if text[at] in _SPACES or text[at] == "\n":
            at += 1
        elif text[at] in "#;":
            at = _line_end(text, at)
            yield ConfigItem("comment", "", None, start, at)
        elif text[at] == "[":
            section, at = _read_header(text, at + 1)
            yield ConfigItem("section", section, None, start, at)
        else:
            key, value, at = _read_setting(text, at)
            yield ConfigItem(
                "setting", key if section is None else f"{section}.{key}", value, start, at
            )


def edit_config(text: str, name: str, value: str, *, keep: bool) -> str:
    """Return *text* with the setting added to the last section of its name, or to a new one.

    Unless *keep*, its other values are removed.

    Raises:
        ValueError: git could not read the text.
    """
    if not keep:
        text = _without(text, normal_name(name))
    section, _dot, key = name.rpartition(".")
    end = _end_of_section(text, normal_name(name).rpartition(".")[0])
    if end is None:
        header, end = _spell_header(section), len(text)
    else:
        header = ""
    before, after = text[:end], text[end:]
    if before and not before.endswith("\n"):
        before += "\n"
    if not after and before.endswith(("\\\n", "\\\r\n")):
        # A backslash at the end would make the added line part of that value.
        before += "\n"
    return f"{before}{header}{_spell_value(key, value)}{after}"


def spell_setting(name: str, value: str) -> str:
    """Return the text of a setting, with its section."""
    section, _dot, key = name.rpartition(".")
    return _spell_header(section) + _spell_value(key, value)


def remove_section(text: str, section: str) -> str:
    """Return *text* without the headers and settings of every such section; comments stay.

    Raises:
        ValueError: git could not read the text.
    """
    name = normal_name(f"{section}.")[:-1]
    return _cut(text, lambda item: _section_of(item) == name)


def remove_values(text: str, name: str, values: Container[str]) -> str:
    """Return *text* without the settings of that name that have one of *values*.

    Raises:
        ValueError: git could not read the text.
    """
    wanted = normal_name(name)
    return _cut(
        text,
        lambda item: (
            item.kind == "setting"
            and item.name == wanted
            and ("true" if item.value is None else item.value) in values
        ),
    )


def _section_of(item: ConfigItem) -> str | None:
    if item.kind == "comment":
        return None
    return item.name if item.kind == "section" else item.name.rpartition(".")[0]


def _without(text: str, name: str) -> str:
    return _cut(text, lambda item: item.kind == "setting" and item.name == name)


def _cut(text: str, is_cut: Callable[[ConfigItem], bool]) -> str:
    kept, at = "", 0
    for item in scan_config(text):
        if not is_cut(item):
            continue
        before = text[at : item.start]
        line_start = before.rpartition("\n")[2]
        if line_start.strip(_SPACES + "\ufeff"):
            # It is on the line of a header, which needs its newline.
            kept += before.rstrip(" \t") + "\n"
        else:
            kept += before.removesuffix(line_start)
        at = item.end
        line_end = _line_end(text, at)
        if item.kind == "section" and not text[at:line_end].strip():
            # The end of a header is before its newline.
            at = line_end
    return kept + text[at:]


def _end_of_section(text: str, section: str) -> int | None:
    """Return where the last section of that name ends, without empty lines at its end."""
    end: int | None = None
    inside = False
    for item in scan_config(text):
        if item.kind == "section":
            inside = item.name == section
        if inside:
            end = item.end
    if end is None:
        return None
    line_end = _line_end(text, end)
    return end if text[end:line_end].strip() or text[:end].endswith("\n") else line_end


def _read_header(text: str, at: int) -> tuple[str, int]:
    base = _BASE.match(text, at)
    at = base.end() if base else at
    name = base[0].lower() if base else ""
    if text[at : at + 1] == "]" and name:
        return name, at + 1
    start = at
    while text[at : at + 1] and text[at] in _SPACES:
        at += 1
    if at == start or text[at : at + 1] != '"':
        raise _broken(text, start, "an invalid section header")
    subsection = _SUBSECTION.match(text, at)
    if subsection is None:
        raise _broken(text, start, "a section header without an end")
    unescaped = _ESCAPED.sub(r"\1", subsection[1])
    return f"{name}.{unescaped}", subsection.end()


def _read_setting(text: str, at: int) -> tuple[str, str | None, int]:
    key = _KEY.match(text, at)
    if key is None:
        raise _broken(text, at, "a line that is not a setting")
    at = key.end()
    while text[at : at + 1] in {" ", "\t"}:
        at += 1
    char, after = _next(text, at)
    if char == "\n":
        return key[0].lower(), None, after
    if char != "=":
        raise _broken(text, at, "an invalid name")
    value, at = _read_value(text, after)
    return key[0].lower(), value, at


def _read_value(text: str, at: int) -> tuple[str, int]:
    value, spaces, quoted = "", "", False
    while True:
        run = (_QUOTED if quoted else _PLAIN).match(text, at)
        char, after = (run[0], run.end()) if run else _next(text, at)
        if char == "\n" and not quoted:
            return value, after
        if char in "#;" and not quoted:
            return value, _line_end(text, at)
        if char in _SPACES and not quoted:
            spaces += char if value else ""
        elif char == "\n":
            raise _broken(text, at, "a quote without an end")
        else:
            value, spaces = value + spaces, ""
            if char == '"':
                quoted = not quoted
            elif char == "\\":
                char, after = _next(text, after)
                if char not in _ESCAPES:
                    raise _broken(text, at, f"an escape unknown to git: \\{char}")
                value += _ESCAPES[char]
            else:
                value += char
        at = after


def _next(text: str, at: int) -> tuple[str, int]:
    """Return the character at *at* and the next position; the end of the text is a newline."""
    if at >= len(text):
        return "\n", at
    if text.startswith("\r\n", at):
        return "\n", at + 2
    return text[at], at + 1


def _line_end(text: str, at: int) -> int:
    """Return where the next line begins."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _broken(text: str, at: int, problem: str) -> ValueError:
    line = text.count("\n", 0, at) + 1
    return ValueError(f"line {line} has {problem}")


def _spell_header(section: str) -> str:
    base, dot, subsection = section.partition(".")
    return f'[{base} "{_escaped(subsection)}"]\n' if dot else f"[{base}]\n"


def _spell_value(key: str, value: str) -> str:
    return f'\t{key} = "{_escaped_value(value)}"\n'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _escaped_value(value: str) -> str:
    return _escaped(value).replace("\n", "\\n").replace("\t", "\\t")
