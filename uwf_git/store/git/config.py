"""Read and write git config as git does: one file with its includes, and all scopes together."""

import os
import re
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Literal, NamedTuple

from uwf_git.debug_log import debug
from uwf_git.errors import BadUsage, Refused, name_some
from uwf_git.model.text import quote_path
from uwf_git.store.durable import FileMemory, sync_directories
from uwf_git.store.locks import hold_ref_lock
from uwf_git.surroundings import CONFIG_VARIABLES, without_local_variables

# Parse and edit the text of git config files; comments and other lines stay as they are.
#
# dulwich is not used: its parser loses the line after a comment that ends in a backslash, and its
# writer loses all comments. Source: git-config(1), "CONFIGURATION FILE"; git's config.c,
# git_parse_source.

_SPACES = " \t\r"
_BASE = re.compile(r"[A-Za-z0-9.-]*")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_PLAIN = re.compile(r'[^\\"#; \t\r\n]+')
_QUOTED = re.compile(r'[^\\"\r\n]+')
_SUBSECTION = re.compile(r'"((?:[^"\\\n]|\\[^\n])*)"\]')
_ESCAPED = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "\\": "\\", '"': '"', "\n": ""}


class ConfigItem(NamedTuple):
    kind: Literal["section", "setting", "comment"]
    name: str
    """As from ``normal_name``; a section's name has no last part, a comment's name is ""."""

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
    """Return *text* with the setting in the last section of its name, or in a new section.

    Unless *keep*, its other values are removed.
    """
    if not keep:
        wanted = normal_name(name)
        text = _cut(text, lambda item: item.kind == "setting" and item.name == wanted)
    section, _dot, key = name.rpartition(".")
    end = _end_of_section(text, normal_name(name).rpartition(".")[0])
    header = ""
    if end is None:
        header, end = _spell_header(section), len(text)
    before, after = text[:end], text[end:]
    if before and not before.endswith("\n"):
        before += "\n"
    if not after and before.endswith(("\\\n", "\\\r\n")):
        # A backslash at the end would make the added line part of that value.
        before += "\n"
    return f"{before}{header}{_spell_value(key, value)}{after}"


def spell_setting(name: str, value: str) -> str:
    section, _dot, key = name.rpartition(".")
    return _spell_header(section) + _spell_value(key, value)


def remove_section(text: str, section: str) -> str:
    """Return *text* without the headers and settings of every such section; comments stay."""
    name = normal_name(f"{section}.")[:-1]
    return _cut(
        text,
        lambda item: (
            item.kind != "comment"
            and name == (item.name if item.kind == "section" else item.name.rpartition(".")[0])
        ),
    )


def remove_values(text: str, name: str, values: Container[str]) -> str:
    """Return *text* without the settings of that name whose value is in *values*."""
    wanted = normal_name(name)
    return _cut(
        text,
        lambda item: (
            item.kind == "setting"
            and item.name == wanted
            and ("true" if item.value is None else item.value) in values
        ),
    )


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
    if at >= len(text):
        return "\n", at
    if text.startswith("\r\n", at):
        return "\n", at + 2
    return text[at], at + 1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _broken(text: str, at: int, problem: str) -> ValueError:
    line = text.count("\n", 0, at) + 1
    return ValueError(f"line {line} has {problem}")


def _spell_header(section: str) -> str:
    base, dot, subsection = section.partition(".")
    return f'[{base} "{_escaped(subsection)}"]\n' if dot else f"[{base}]\n"


def _spell_value(key: str, value: str) -> str:
    value = _escaped(value).replace("\n", "\\n").replace("\t", "\\t")
    return f'\t{key} = "{value}"\n'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


# Sizes as git config spells them: ``512``, ``64k``, ``32m``, ``1g``.

_NUMBER = re.compile(r"([0-9]{1,15})([kmg]?)", re.IGNORECASE)
SCALES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


def parse_size(text: str) -> int | None:
    """Return the number of bytes that *text* spells; None for any other text."""
    match = _NUMBER.fullmatch(text)
    return None if match is None else int(match[1]) * SCALES[match[2].lower()]


# Read and write a git config file as git does: its includes, and which value counts.
#
# Conditional includes (``includeIf``) are not followed: git is asked about them. A file is changed
# under git's own lock. Source: git-config(1), "FILES" and "Includes".

_DEEPEST_INCLUDE = 10
_MOST_FILES = 1_000
_MOST_BYTES = 8 * 1024 * 1024
_TRUE = {"true", "yes", "on"}
_FALSE = {"false", "no", "off", ""}
_SIGNED_NUMBER = re.compile(r"[-+]?[0-9]{1,18}[kmg]?", re.IGNORECASE)


class BadConfig(Refused):
    code = "bad-config"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"{path} is not a git config file: {problem}",
            # git itself waits for ever for a pipe.
            hint=f"see what git says: `git config --file {quote_path(path)} --list`"
            if os.path.isfile(path)
            else "find the include.path that names it with `git config --no-includes --list`",
            path=path,
        )


class GitConfig(NamedTuple):
    """Settings by full name (`section.subsection.name`), each with all its values in order."""

    values: dict[str, list[str]]

    def get(self, name: str) -> str | None:
        return next(reversed(self.get_all(name)), None)

    def get_all(self, name: str) -> list[str]:
        return self.values.get(normal_name(name), [])

    def get_flag(self, name: str, *, default: bool) -> bool:
        """Return *name* read as git reads a boolean; *default* if it is not one."""
        value = self.get(name)
        if value is None:
            return default
        word = value.lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        return word.strip("+-0kmg") != "" if _SIGNED_NUMBER.fullmatch(word) else default

    def over(self, other: "GitConfig") -> "GitConfig":
        """Return these settings on top of *other*: their values come last, so they count."""
        merged = {name: list(values) for name, values in other.values.items()}
        for name, values in self.values.items():
            merged.setdefault(name, []).extend(values)
        return GitConfig(merged)


def read_config_file(path: str) -> GitConfig:
    """Read a git config file with what it includes; a missing one is empty."""
    return _group((item.name, item.value) for item in _read_items(path, depth=0, read=[]))


def _group(settings: Iterable[tuple[str, str | None]]) -> GitConfig:
    values: dict[str, list[str]] = {}
    for name, value in settings:
        values.setdefault(name, []).append("true" if value is None else value)
    return GitConfig(values)


def _read_items(path: str, *, depth: int, read: list[int]) -> Iterator[ConfigItem]:
    """Yield the items of a file and its includes; *read* has the sizes of the files so far."""
    if depth > _DEEPEST_INCLUDE:
        raise BadConfig(path, "it is included too deeply, or by itself")
    # Ten levels of files that each include the next one twice are a thousand files.
    if len(read) == _MOST_FILES or sum(read) > _MOST_BYTES:
        raise BadConfig(path, "too much is included before it")
    try:
        file = _FILES.read(path, _read_file)
        read.append(file.length)
        for item in file.settings:
            yield item
            if item.name == "include.path" and item.value:
                included = os.path.join(os.path.dirname(path), os.path.expanduser(item.value))
                yield from _read_items(included, depth=depth + 1, read=read)
    except ValueError as error:
        raise BadConfig(path, str(error)) from error


class _ConfigFile(NamedTuple):
    length: int
    settings: tuple[ConfigItem, ...]


_FILES: FileMemory[_ConfigFile] = FileMemory(64)


def _read_file(path: str) -> _ConfigFile:
    text = _read_text(path)
    settings = (item for item in scan_config(text) if item.kind == "setting")
    return _ConfigFile(len(text), tuple(settings))


def _read_text(path: str) -> str:
    try:
        # Without O_NONBLOCK a named pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror})") from error
    try:
        # /dev/null, with which people switch a file off, ends at once; /dev/zero does not.
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        if not is_file and not os.path.samefile(descriptor, os.devnull):
            raise ValueError("it is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(_MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES // 1024**2} MB")
    return content.decode(errors="surrogateescape")


def add_config(path: str, name: str, value: str) -> None:
    set_config(path, name, value, keep=True)


def set_config(path: str, name: str, value: str, *, keep: bool = False) -> None:
    """Write a setting into the file at *path*; its other values stay only with *keep*."""
    if "\0" in value:
        raise BadUsage(
            f"the value of {name} has a NUL, which git config cannot hold",
            code="unfit-value",
            setting=name,
        )
    rewrite_config(path, lambda text: edit_config(text, name, value, keep=keep))


def rewrite_config(path: str, change: Callable[[str], str]) -> None:
    """Replace the text of the file at *path* by what *change* returns for it, atomically.

    If that is a link, the file that it leads to is replaced, as by git.
    """
    path = os.path.realpath(path)
    directory, file_name = os.path.split(path)
    os.makedirs(directory, exist_ok=True)
    # The markers of this lock are in <directory>/uwf/ref-locks, as those of refs.
    with hold_ref_lock(directory, file_name, b"", durable=False) as lock:
        try:
            text = change(_read_text(path))
        except ValueError as error:
            raise BadConfig(path, str(error)) from error
        with open(lock, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            os.chmod(lock, stat.S_IMODE(os.stat(path).st_mode))
        os.replace(lock, path)
        sync_directories([directory])


# Read the settings of all scopes of git: system, user, repository, and command.
#
# Our own reader does it, without a process, unless only git knows the answer: conditional includes,
# settings in the environment, settings of a worktree, a git that has another system file. Then
# `git config --list -z` is asked.
# Source: git-config(1), "FILES", "SCOPES", "ENVIRONMENT"; git's config.c; its Makefile, sysconfdir.


def find_program(name: str, environ: Mapping[str, str]) -> str | None:
    if os.path.dirname(name):
        return name if os.access(name, os.X_OK) else None
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder or os.curdir, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


_SYSTEM_CONFIG = "/etc/gitconfig"
_SYSTEM_FOLDERS = {"/usr/bin", "/bin"}
_APPLE_CONFIGS = (
    "/Library/Developer/CommandLineTools/usr/share/git-core/gitconfig",
    "/Applications/Xcode.app/Contents/Developer/usr/share/git-core/gitconfig",
)
_NO_REPOSITORY = "/dev/null"
_LONGEST_S = 60.0
_LIST = "git config --list --show-origin"


def _git_not_asked(why: str, problem: str, *, hint: str) -> Refused:
    return Refused(
        f"{why}, which only git can read: {problem}", code="git-settings-unread", hint=hint, why=why
    )


def read_user_config(environ: Mapping[str, str]) -> GitConfig:
    config = _read_user_files(environ)
    why = _why_only_git_knows(config, environ)
    return config if why is None else _ask_git(why, _NO_REPOSITORY, environ)


def add_user_config(
    git_dir: str, own: GitConfig, environ: Mapping[str, str], *, user: GitConfig
) -> GitConfig:
    """Return all settings that git has in *git_dir*, whose own config file holds *own*.

    *user* is what ``read_user_config`` returned.
    """
    config = own.over(user)
    why = _why_only_git_knows(config, environ)
    if why is None and config.get_flag("extensions.worktreeConfig", default=False):
        why = "extensions.worktreeConfig is set"
    if why is None:
        return config
    answer = _ask_git(why, git_dir, environ)
    if not own.values.keys() <= answer.values.keys():
        raise _git_not_asked(
            why,
            f"it does not take {git_dir} for a repository",
            hint=f"see what git says: `git --git-dir={quote_path(git_dir)} status`",
        )
    return answer


def _read_user_files(environ: Mapping[str, str]) -> GitConfig:
    home = environ.get("HOME", "")
    xdg = environ.get("XDG_CONFIG_HOME") or (home and os.path.join(home, ".config"))
    if "GIT_CONFIG_GLOBAL" in environ:
        paths = [environ["GIT_CONFIG_GLOBAL"]]
    else:
        paths = [xdg and os.path.join(xdg, "git", "config"), home and f"{home}/.gitconfig"]
    config = GitConfig({})
    if not _is_system_ignored(environ):
        config = read_config_file(environ.get("GIT_CONFIG_SYSTEM", _SYSTEM_CONFIG))
    for path in paths:
        # As git: a file of another user, as sudo may leave in $HOME, is no error.
        if os.access(path, os.R_OK):
            config = read_config_file(path).over(config)
    return config


def _is_system_ignored(environ: Mapping[str, str]) -> bool:
    variable = environ.get("GIT_CONFIG_NOSYSTEM", "")
    return GitConfig({"x.y": [variable]}).get_flag("x.y", default=True)


def _why_only_git_knows(config: GitConfig, environ: Mapping[str, str]) -> str | None:
    """Return what only git can read, or None if our own reader has read everything."""
    for variable in CONFIG_VARIABLES:
        if environ.get(variable, "") not in {"", "0"}:
            return f"{variable} is set"
    for name in config.values:
        if name.startswith("includeif.") and name.endswith(".path"):
            return "there is a conditional include"
    if any(path.startswith("%(prefix)/") for path in config.get_all("include.path")):
        return "a file below git's prefix is included"
    if "GIT_CONFIG_SYSTEM" not in environ and not _is_system_ignored(environ):
        other = _find_other_system_file(environ)
        return None if other is None else f"git may have a system file of its own, {other}"
    return None


def _find_other_system_file(environ: Mapping[str, str]) -> str | None:
    """Return a file that makes it unclear which system file the git on the PATH reads.

    A git of the system reads /etc/gitconfig, Apple's one more; a git with another prefix reads
    `<prefix>/etc/gitconfig`, unless who built it chose otherwise.
    """
    git = find_program("git", environ)
    if git is None:
        return None
    real = os.path.realpath(git)
    if os.path.dirname(real) in _SYSTEM_FOLDERS:
        candidates: tuple[str, ...] = _APPLE_CONFIGS
    else:
        prefixes = (os.path.dirname(os.path.dirname(path)) for path in (os.path.abspath(git), real))
        candidates = (*(f"{prefix}/etc/gitconfig" for prefix in prefixes), _SYSTEM_CONFIG)
    return next(filter(os.path.exists, candidates), None)


def _ask_git(why: str, git_dir: str, environ: Mapping[str, str]) -> GitConfig:
    # It imports subprocess (4 ms), which reading files does not need.
    from uwf_git.store.git.program import ProgramFailed, run_program  # noqa: PLC0415 (see above)

    git = find_program("git", environ)
    if git is None:
        raise _git_not_asked(why, "there is no git on the PATH", hint="install git")
    child = without_local_variables(environ, keep_settings=True)
    argv = [git, f"--git-dir={git_dir}", "config", "--list", "-z"]
    try:
        ran = run_program(argv, child, timeout_s=_LONGEST_S)
    except ProgramFailed as error:
        raise _git_not_asked(why, error.message, hint=f"see what it does: `{_LIST}`") from error
    if ran.status != 0:
        raise _git_not_asked(why, ran.last_line, hint=f"see all that it says: `{_LIST}`")
    debug("K7W2QF5N", "git asked for its settings", why=why)
    items = ran.stdout.decode(errors="surrogateescape").split("\0")[:-1]
    pairs = (item.partition("\n") for item in items)
    return _group((name, value if newline else None) for name, newline, value in pairs)


# Shared repositories (core.sharedRepository): files that a group may write.
#
# Rights are only added, and only for the group. Source: git-config(1), core.sharedRepository;
# git-init(1), --shared.

NAME = "core.sharedRepository"

_GROUP_WORDS = {"group", "true", "yes", "on", "1", "all", "world", "everybody", "2"}
_FILE_BITS = stat.S_IRGRP | stat.S_IWGRP
# setgid: new files get the group of the folder, not the primary group of their creator.
_FOLDER_BITS = stat.S_IRWXG | stat.S_ISGID


def is_shared(config: GitConfig) -> bool:
    value = (config.get(NAME) or "").lower()
    if value in _GROUP_WORDS:
        return True
    # As in chmod: 0660 and the like.
    return len(value) > 1 and set(value) <= set("01234567") and bool(int(value, 8) & stat.S_IWGRP)


def share_folder(path: str) -> None:
    """Give the group the rights of the owner on everything in *path*."""
    for folder, _folders, files in os.walk(path):
        _add_bits(folder, _FOLDER_BITS)
        for name in files:
            file = os.path.join(folder, name)
            if not os.path.islink(file):
                _add_bits(file, _bits_like_the_owner(os.stat(file).st_mode))


@contextmanager
def shared_umask(config: GitConfig, *, own_file: str | None = None) -> Iterator[None]:
    """Set a umask that makes new files writable for the group, if the repository is shared.

    *own_file*, which ``find_user_file`` named, stays out of reach of the group.
    """
    if not is_shared(config):
        yield
        return
    if own_file is not None:
        _close_folders(own_file)
    before = os.umask(0o077)
    os.umask(before & ~stat.S_IRWXG)
    try:
        yield
    finally:
        os.umask(before)


def _close_folders(own_file: str) -> None:
    """Let nobody else into ``uwf/stores/<store>``: who may write there may replace the file."""
    folder = os.path.dirname(own_file)
    stores = os.path.dirname(folder)
    for each in (os.path.dirname(stores), stores, folder):
        with suppress(OSError):
            os.makedirs(each, mode=stat.S_IRWXU, exist_ok=True)
            os.chmod(each, stat.S_IRWXU)


def _bits_like_the_owner(mode: int) -> int:
    bits = _FILE_BITS if mode & stat.S_IWUSR else stat.S_IRGRP
    return bits | stat.S_IXGRP if mode & stat.S_IXUSR else bits


def _add_bits(path: str, bits: int) -> None:
    found = os.stat(path)
    if found.st_uid == os.geteuid() and found.st_mode & bits != bits:
        os.chmod(path, stat.S_IMODE(found.st_mode) | bits)


# Mirrors: remotes by which plain git takes back or deletes what happened to threads.
#
# After `git clone --mirror`, `git fetch` moves each ref here to its value there, also back over
# steps, and `git push` deletes each ref there that is missing here. Source: git-config(1),
# `remote.<name>.mirror`; git-fetch(1), "<refspec>".

_OURS = ("refs/threads/", "refs/archive/", "refs/workflows/", "refs/cas/")
_SECTION = "remote."


def refuse_mirror(config: GitConfig) -> None:
    """Raise `Refused` if a remote is a mirror."""
    names = list_mirrors(config)
    if names:
        a_mirror = "is a mirror" if len(names) == 1 else "are mirrors"
        raise Refused(
            f"remote {name_some(names)} {a_mirror}: `git fetch` would take back what is recorded "
            "here, and `git push` delete what is not here",
            code="mirror-store",
            hint="`uwf remote repair` makes it safe to use; until then only reading works",
            remotes=names,
        )


def list_mirrors(config: GitConfig) -> list[str]:
    names = {name.rpartition(".")[0] for name in config.values if name.startswith(_SECTION)}
    found = (each.removeprefix(_SECTION) for each in names if _is_mirror(config, each))
    return sorted(found)


def _is_mirror(config: GitConfig, section: str) -> bool:
    return config.get_flag(f"{section}.mirror", default=False) or any(
        moves_threads_back(refspec)
        for key in ("fetch", "push")
        for refspec in config.get_all(f"{section}.{key}")
    )


def moves_threads_back(refspec: str) -> bool:
    """Check whether *refspec* may move a shared ref other than forward."""
    source, _colon, target = refspec.removeprefix("+").partition(":")
    fixed, star, _rest = (target or source).partition("*")
    return refspec.startswith("+") and any(
        fixed.startswith(ours) or (star and ours.startswith(fixed)) for ours in _OURS
    )
