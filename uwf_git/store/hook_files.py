"""Hook files: the two scripts through which git asks uwf about a push.

Owns: their text, and putting them into a git directory. The files in hooks/ of the source are
the same text, for those who install by hand.
Knows nothing of: what is allowed. Always true: somebody else's hook is never overwritten; a
pre-receive that finds no uwf refuses every push, since nobody would look at what comes in.
"""

import os
import shlex
import stat
from collections.abc import Mapping

from uwf_git.errors import Refused
from uwf_git.store.durable import remove, sync_directories, write_temporary
from uwf_git.store.git_config import GitConfig

_EXECUTE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_MARK = "# Installed by `uwf init --shared`"

_SHIM = """\
#!/bin/sh
# Installed by `uwf init --shared`, which replaces it with a newer one.
# {what}
# uwf is the Python that installed it, else $UWF, else `uwf` on the PATH.
python=''
if [ -n "$python" ] && [ -x "$python" ]; then
	exec "$python" -P -m uwf_git hook {name}
fi
if [ -n "$UWF" ]; then
	exec "$UWF" hook {name}
fi
if command -v uwf >/dev/null 2>&1; then
	exec uwf hook {name}
fi
echo '{missing}' >&2
exit {status}
"""

SHIMS: Mapping[str, str] = {
    "pre-receive": _SHIM.format(
        name="pre-receive",
        what="It refuses pushes that would damage threads, workflows or nodes.",
        missing="error: no uwf was found to check this push; on the server: uwf init --shared",
        status=1,
    ),
    "post-receive": _SHIM.format(
        name="post-receive",
        what="It tells the command in git config uwf.onReceive what was pushed.",
        missing="warning: no uwf was found to tell of this push; it is done",
        status=0,
    ),
}
"""The text of each hook, by its name."""


class ForeignHook(Refused):
    """There is a hook already that we did not write."""

    code = "foreign-hook"

    def __init__(self, path: str) -> None:
        name = os.path.basename(path)
        super().__init__(
            f"{path} is there already, and is not uwf's",
            hint=f"move it away and repeat this; or keep it, and have it run `uwf hook {name}` "
            "with the standard input that git gives it, and end with its exit status",
            path=path,
        )


class HooksLinked(Refused):
    """The repository's own folder of hooks is a link to somewhere else."""

    code = "hooks-linked"

    def __init__(self, folder: str) -> None:
        super().__init__(
            f"{folder} is a link, and hooks that are put there would be others' as well",
            hint=f"make it a folder of its own: `rm {shlex.quote(folder)}`; or have the hooks "
            "there run `uwf hook pre-receive` and `uwf hook post-receive`",
            path=folder,
        )


class HooksElsewhere(Refused):
    """git looks for hooks in another folder than the repository's own."""

    code = "hooks-elsewhere"

    def __init__(self, folder: str) -> None:
        super().__init__(
            f"core.hooksPath sends git to {folder} for hooks, so those of the store would not run",
            hint="set it for this store alone: `git config core.hooksPath hooks` in it; or have "
            "the hooks there run `uwf hook pre-receive` and `uwf hook post-receive`",
            path=folder,
        )


def check_hooks(git_dir: str, config: GitConfig) -> None:
    """See to it that ``install_hooks`` would work, and that git would run what it installs.

    Raises:
        ForeignHook: somebody else's hook is there.
        HooksElsewhere: git would not look there.
        HooksLinked: they would be written somewhere else.
    """
    elsewhere = config.get("core.hooksPath")
    own = os.path.join(git_dir, "hooks")
    if os.path.islink(own):
        raise HooksLinked(own)
    # Relative to where hooks run, which for a bare repository is the git directory.
    if elsewhere and os.path.realpath(os.path.join(git_dir, elsewhere)) != os.path.realpath(own):
        raise HooksElsewhere(elsewhere)
    for name in SHIMS:
        path = os.path.join(own, name)
        if os.path.lexists(path) and not _is_ours(path):
            raise ForeignHook(path)


def install_hooks(git_dir: str, *, python: str) -> list[str]:
    """Write the hooks, for the interpreter *python* ("" if there is no telling).

    Returns:
        Their paths.

    Raises:
        OSError: the machine would not let them be written.
    """
    os.makedirs(os.path.join(git_dir, "hooks"), exist_ok=True)
    paths = []
    for name, text in SHIMS.items():
        path = os.path.join(git_dir, "hooks", name)
        own = text.replace("python=''\n", f"python={shlex.quote(python)}\n", 1)
        _replace_program(path, os.fsencode(own))
        paths.append(path)
    return paths


def _replace_program(path: str, content: bytes) -> None:
    """Put *content* under *path* in one move; git skips a hook that may not be executed."""
    folder = os.path.dirname(path)
    temporary = write_temporary(folder, content, prefix=".tmp_", durable=True)
    try:
        os.chmod(temporary, os.stat(temporary).st_mode | _EXECUTE)
        os.replace(temporary, path)
    except BaseException:
        remove(temporary)
        raise
    sync_directories([folder])


def _is_ours(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return _MARK.encode() in file.read(1000)
    except OSError:
        return False
