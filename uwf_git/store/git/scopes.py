"""Read the settings of all scopes of git: system, user, repository, and command.

Our own reader does it, without a process, unless only git knows the answer: conditional includes,
settings in the environment, settings of a worktree, a git that has another system file. Then
`git config --list -z` is asked.
Source: git-config(1), "FILES", "SCOPES", "ENVIRONMENT"; git's config.c; its Makefile, sysconfdir.
"""

import os
from collections.abc import Mapping

from uwf_git.debug_log import debug
from uwf_git.errors import Refused
from uwf_git.git_environment import CONFIG_VARIABLES, without_local_variables
from uwf_git.store.git.config import GitConfig, read_config_file
from uwf_git.store.git.find_program import find_program

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
