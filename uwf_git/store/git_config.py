"""git config: settings, read as git reads them and written without losing a comment.

Owns: values of git config files, and setting or adding one line. Reading is dulwich's parser;
writing is ours, because dulwich rewrites the whole file and drops what people wrote in it.
Knows nothing of: which settings there are.
Always true: names are compared as git does (section and name in any case, subsection exactly).
Source: git-config(1), "CONFIGURATION FILE".
"""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass

from dulwich.config import ConfigFile

from uwf_git.errors import Refused
from uwf_git.store.ref_lock import hold_ref_lock

_SYSTEM_CONFIG = "/etc/gitconfig"
_TRUE = {"true", "yes", "on", "1", ""}
_HEADER = re.compile(r'^\s*\[\s*([^\s\]"]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]')


class BadConfig(Refused):
    """A git config file that cannot be parsed."""

    code = "bad-config"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"{path} is not a git config file: {problem}",
            hint=f"see what git says: `git config --file {path} --list`",
            path=path,
        )


@dataclass(frozen=True, slots=True)
class GitConfig:
    """Settings by full name (`section.subsection.name`), each with all its values in order."""

    values: dict[str, list[str]]

    def get(self, name: str) -> str | None:
        """Give the last value of *name*, the one that counts, or None."""
        found = self.values.get(normal_name(name))
        return found[-1] if found else None

    def get_all(self, name: str) -> list[str]:
        """Give every value of *name*, in order."""
        return self.values.get(normal_name(name), [])

    def get_flag(self, name: str, *, default: bool) -> bool:
        """Give *name* as git reads a boolean."""
        value = self.get(name)
        return default if value is None else value.lower() in _TRUE

    def over(self, other: "GitConfig") -> "GitConfig":
        """Give these settings laid over *other*: ours come last, so they count."""
        merged = {name: list(values) for name, values in other.values.items()}
        for name, values in self.values.items():
            merged.setdefault(name, []).extend(values)
        return GitConfig(merged)


def normal_name(name: str) -> str:
    """Give *name* as git compares it: section and last part in lower case."""
    section, dot, rest = name.partition(".")
    subsection, dot2, key = rest.rpartition(".")
    return f"{section.lower()}{dot}{subsection}{dot2}{key.lower()}"


def read_config_file(path: str) -> GitConfig:
    """Read a git config file with what it includes; a missing one is empty.

    Raises:
        BadConfig: it cannot be parsed.
    """
    try:
        parsed = ConfigFile.from_path(path)
    except FileNotFoundError:
        return GitConfig({})
    except (ValueError, IndexError) as error:
        raise BadConfig(path, str(error)) from error
    values: dict[str, list[str]] = {}
    for section in parsed.sections():
        prefix = b".".join(section)
        for key, value in parsed.items(section):
            name = normal_name(_decode(prefix + b"." + key))
            values.setdefault(name, []).append(_decode(value))
    return GitConfig(values)


def read_user_config(environ: Mapping[str, str]) -> GitConfig:
    """Read the settings of the system and of the user, where git finds them.

    Raises:
        BadConfig: one of the files cannot be parsed.
    """
    home = environ.get("HOME", "")
    xdg = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    paths = [] if environ.get("GIT_CONFIG_NOSYSTEM") else [_SYSTEM_CONFIG]
    if "GIT_CONFIG_SYSTEM" in environ:
        paths = [environ["GIT_CONFIG_SYSTEM"]]
    if "GIT_CONFIG_GLOBAL" in environ:
        paths.append(environ["GIT_CONFIG_GLOBAL"])
    elif home:
        paths += [os.path.join(xdg, "git", "config"), os.path.join(home, ".gitconfig")]
    config = GitConfig({})
    for path in paths:
        config = read_config_file(path).over(config)
    return config


def set_config(path: str, name: str, value: str) -> None:
    """Set *name* to *value* in the file at *path*; its other values of that name go away.

    Raises:
        RefLocked: git is writing the file and does not let go.
    """
    _edit(path, name, value, keep=False)


def add_config(path: str, name: str, value: str) -> None:
    """Add one more *value* of *name* to the file at *path*."""
    _edit(path, name, value, keep=True)


def _edit(path: str, name: str, value: str, *, keep: bool) -> None:
    directory, file_name = os.path.split(path)
    os.makedirs(directory, exist_ok=True)
    # Its markers lie in <directory>/uwf/ref-locks, as those of refs: one way to take git's lock.
    with hold_ref_lock(directory, file_name, b"", durable=False) as lock:
        try:
            with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
                lines = file.read().splitlines(keepends=True)
        except FileNotFoundError:
            lines = []
        lines = _edited(lines, name, value, keep=keep)
        with open(lock, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write("".join(lines))
            file.flush()
            os.fsync(file.fileno())
        _keep_mode(path, lock)
        os.replace(lock, path)


def _keep_mode(path: str, lock: str) -> None:
    try:
        os.chmod(lock, stat.S_IMODE(os.stat(path).st_mode))
    except FileNotFoundError:
        return


def _edited(lines: list[str], name: str, value: str, *, keep: bool) -> list[str]:
    """Give *lines* with the setting in the last section of its name, or in a new one."""
    section, _dot, rest = name.partition(".")
    subsection, _dot, key = rest.rpartition(".")
    setting = re.compile(rf"^\s*{re.escape(key)}\s*(=|$|[#;])", re.IGNORECASE)
    result: list[str] = []
    inside = False
    end_of_section: int | None = None
    continued = dropped = False
    for line in lines:
        header = None if continued else _HEADER.match(line)
        if header is not None:
            inside = _is_section(header, section, subsection)
        if not continued:
            dropped = inside and not keep and setting.match(line) is not None
        continued = line.rstrip("\r\n").endswith("\\")
        if not dropped:
            result.append(line if line.endswith("\n") else line + "\n")
        if inside and (header is not None or line.strip()):
            end_of_section = len(result)
    if end_of_section is None:
        quoted = subsection.replace("\\", "\\\\").replace('"', '\\"')
        result.append(f'[{section} "{quoted}"]\n' if subsection else f"[{section}]\n")
        end_of_section = len(result)
    result.insert(end_of_section, f"\t{key} = {_quoted(value)}\n")
    return result


def _is_section(header: re.Match[str], section: str, subsection: str) -> bool:
    written = re.sub(r"\\(.)", r"\1", header[2] or "")
    return header[1].lower() == section.lower() and written == subsection


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'


def _decode(value: bytes) -> str:
    return value.decode(errors="surrogateescape")
