"""Read the settings of all scopes of git: system, user, repository, and command.

Our own reader does it, without a process, unless only git knows the answer: conditional includes,
settings in the environment, settings of a worktree, a git that has another system file. Then
`git config --list -z` is asked.
Source: git-config(1), "FILES", "SCOPES", "ENVIRONMENT"; git's config.c; its Makefile, sysconfdir.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from uwf_git.debug_log import debug
from uwf_git.errors import Refused
from uwf_git.git_environment import CONFIG_VARIABLES, without_local_variables
from uwf_git.store.git.config import GitConfig, read_config_file

# Find a program on the PATH. Apart from program.py, since that imports subprocess (4 ms).


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
    git_dir: str, own: GitConfig, environ: Mapping[str, str], *, user: GitConfig | None = None
) -> GitConfig:
    """Return all settings that git has in *git_dir*, whose own config file holds *own*.

    *user* is what ``read_user_config`` returned, if it was called before.
    """
    config = own.over(_read_user_files(environ) if user is None else user)
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
            hint=f"see what git says: `git --git-dir={git_dir} status`",
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
    return _parse_listing(ran.stdout)


def _parse_listing(listing: bytes) -> GitConfig:
    values: dict[str, list[str]] = {}
    for item in listing.decode(errors="surrogateescape").split("\0")[:-1]:
        name, newline, value = item.partition("\n")
        values.setdefault(name, []).append(value if newline else "true")
    return GitConfig(values)


# Shared repositories (core.sharedRepository): files that a group may write.
#
# Rights are only added, and only for the group. Source: git-config(1), core.sharedRepository;
# git-init(1), --shared.

NAME = "core.sharedRepository"

_GROUP_WORDS = {"group", "true", "yes", "on", "1", "all", "world", "everybody", "2"}
_FILE_BITS = stat.S_IRGRP | stat.S_IWGRP
_READ_BIT = stat.S_IRGRP
# setgid: new files get the group of the folder, not the primary group of their creator.
_FOLDER_BITS = stat.S_IRWXG | stat.S_ISGID
_ANY_EXECUTE = stat.S_IXUSR


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
def shared_umask(config: GitConfig) -> Iterator[None]:
    """Set a umask that makes new files writable for the group, if the repository is shared."""
    if not is_shared(config):
        yield
        return
    before = os.umask(0o077)
    os.umask(before & ~stat.S_IRWXG)
    try:
        yield
    finally:
        os.umask(before)


def _bits_like_the_owner(mode: int) -> int:
    bits = _FILE_BITS if mode & stat.S_IWUSR else _READ_BIT
    return bits | stat.S_IXGRP if mode & _ANY_EXECUTE else bits


def _add_bits(path: str, bits: int) -> None:
    found = os.stat(path)
    if found.st_uid == os.geteuid() and found.st_mode & bits != bits:
        os.chmod(path, stat.S_IMODE(found.st_mode) | bits)
