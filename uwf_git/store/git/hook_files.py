"""The hooks by which git asks uwf about a push: their files, and the lines that git gives them."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from uwf_git.errors import BadUsage, Refused
from uwf_git.model.names import Oid
from uwf_git.model.text import quote_path
from uwf_git.model.workflow_name import fold_workflow_name
from uwf_git.store.durable import replace_file
from uwf_git.store.git.config import GitConfig, read_config_file

# The two hook scripts, and their installation.
#
# A hook that uwf did not write is never replaced. A pre-receive hook that finds no uwf refuses
# every push, since nothing would check it.

HOOKS_PATH = "core.hooksPath"

PINNED: Mapping[str, str] = {
    # Relative to where receive hooks run, the git directory: the repository may be moved.
    HOOKS_PATH: "hooks",
    "receive.fsckObjects": "true",
    "receive.shallowUpdate": "false",
}
"""What a shared store sets itself: unset, the settings of whoever pushes to its path count."""

_PROGRAM = 0o777
_MARK = "# Installed by `uwf init --shared`"

_SHIM = """\
#!/bin/sh
# Installed by `uwf init --shared`, which replaces it with a newer one.
# {what}
# uwf is the Python that installed it, if whoever pushes finds uwf there, else $UWF, else `uwf` on
# the PATH.
python=''
{alone}
find='from importlib.util import find_spec as find
needs = "uwf_git", "click", "dulwich", "cbor2", "xxhash", "jsonschema"
raise SystemExit(not all(map(find, needs)))'
if [ -x "$python" ] && "$python" -P -c "$find" 2>/dev/null; then
	set -- "$python" -P -m uwf_git
elif [ -n "$UWF" ]; then
	set -- "$UWF"
elif command -v uwf >/dev/null 2>&1; then
	set -- uwf
else
	echo '{missing}' >&2
	exit {status}
fi
[ -n "$seen" ] || exec "$@" hook {name}
{{ printf %s "$seen"; $rest; }} | "$@" hook {name}
"""

# Starting Python costs a second of a small server's core, and a worker renews its claims often.
_CLAIMS_ALONE = """\
# Claims alone are judged here: each ref a thread's, each value a blob of 4 KB at most, or none.
seen='' rest='' new='' count=0 small=0
while [ -z "$rest" ] && IFS= read -r line; do
	seen=$seen$line'
' oid=${line#* } id=${line##*/}
	oid=${oid%% *}
	[ "$line" = "${line%% *} $oid refs/claims/$id" ] && [ ${#id} = 26 ] || rest='cat'
	case $id in [!01234567]* | *[!0123456789ABCDEFGHJKMNPQRSTVWXYZ]*) rest='cat' ;; esac
	case $oid in *[!0]*) count=$((count + 1)) new=$new$oid'
' ;; esac
	[ ${#seen} -lt 100000 ] || rest='cat'
done
if [ -z "$rest" ] && [ -n "$seen" ]; then
	while read -r kind size; do
		[ "$kind" = blob ] && [ "$size" -le 4096 ] && small=$((small + 1))
	done <<-END
	$(printf %s "$new" | git cat-file --batch-check='%(objecttype) %(objectsize)' 2>/dev/null)
	END
	[ $small != $count ] || exit 0
fi"""

_NOBODY_TO_TELL = """\
# Without that command, only an archive beside an active ref leaves something to do.
seen='' rest=:
git config --get uwf.onReceive >/dev/null 2>&1
if [ $? = 1 ]; then
	seen=$(grep ' refs/archive/') || exit 0
	printf '%s\\n' "$seen" | sed 's,.* refs/archive/,refs/threads/,' |
		git cat-file --batch-check 2>/dev/null | grep -qv ' missing$' || exit 0
	seen=$seen'
'
fi"""

SHIMS: Mapping[str, str] = {
    "pre-receive": _SHIM.format(
        name="pre-receive",
        what="It refuses pushes that would damage threads, workflows or nodes.",
        alone=_CLAIMS_ALONE,
        missing="error: no uwf was found to check this push; on the server: uwf init --shared",
        status=1,
    ),
    "post-receive": _SHIM.format(
        name="post-receive",
        what="It tells the command in git config uwf.onReceive what was pushed.",
        alone=_NOBODY_TO_TELL,
        missing="warning: no uwf was found to tell of this push; it is done",
        status=0,
    ),
}
"""The text of each hook by its name; the files in hooks/ of the source are the same text."""


def check_hooks(git_dir: str, config: GitConfig) -> None:
    """Check that ``install_hooks`` may write the hooks, and that *config*'s git would run them."""
    own = os.path.join(git_dir, "hooks")
    if os.path.islink(own):
        raise Refused(
            f"{own} is a symbolic link, so its hooks would run for other repositories too",
            code="hooks-linked",
            hint=f"make it a folder of its own: `rm {quote_path(own)}`; or have the hooks "
            "there run `uwf hook pre-receive` and `uwf hook post-receive`",
            path=own,
        )
    if not _runs_own_hooks(git_dir, config):
        folder = config.get(HOOKS_PATH) or ""
        raise Refused(
            f"core.hooksPath makes git run the hooks in {folder}, not those of the store",
            code="hooks-elsewhere",
            hint="change it: `git config core.hooksPath hooks` in the store; or have "
            "the hooks there run `uwf hook pre-receive` and `uwf hook post-receive`",
            path=folder,
        )
    for name in SHIMS:
        path = os.path.join(own, name)
        if os.path.lexists(path) and not _is_ours(path):
            raise Refused(
                f"{path} exists already, and is not uwf's",
                code="foreign-hook",
                hint=f"move it away and repeat this; or keep it, and have it run `uwf hook {name}` "
                "with the standard input that git gives it, and end with its exit status",
                path=path,
            )


def install_hooks(git_dir: str, *, python: str) -> list[str]:
    """Write the hooks for the interpreter *python* ("" if unknown); return their paths."""
    os.makedirs(os.path.join(git_dir, "hooks"), exist_ok=True)
    paths = []
    for name, text in SHIMS.items():
        path = os.path.join(git_dir, "hooks", name)
        own = text.replace("python=''\n", f"python={shlex.quote(python)}\n", 1)
        # git skips a hook that is not executable, so it never is without that.
        replace_file(path, os.fsencode(own), mode=_PROGRAM)
        paths.append(path)
    return paths


def find_unpinned(git_dir: str) -> str | None:
    """Return why pushes to the repository may escape its hooks; None if they cannot."""
    if not _is_ours(os.path.join(git_dir, "hooks", "pre-receive")):
        return None
    own = read_config_file(os.path.join(git_dir, "config"))
    if not _runs_own_hooks(git_dir, own):
        return f"its {HOOKS_PATH} is {own.get(HOOKS_PATH)}, so git runs none of its hooks"
    missing = [name for name in PINNED if own.get(name) is None]
    if not missing:
        return None
    return f"it does not set {', '.join(missing)}, so the git settings of whoever pushes count"


def _runs_own_hooks(git_dir: str, config: GitConfig) -> bool:
    path = config.get(HOOKS_PATH)
    own = os.path.join(git_dir, PINNED[HOOKS_PATH])
    return path is None or os.path.realpath(os.path.join(git_dir, path)) == os.path.realpath(own)


def _is_ours(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return _MARK.encode() in file.read(1000)
    except OSError:
        return False


# Ref updates: the lines that git passes to receive hooks, and which of the refs are uwf's.
#
# Imports no store: a push of branches alone costs next to nothing.
# Source: githooks(5), "pre-receive" and "post-receive".

MOST_INPUT_BYTES = 64 * 1024 * 1024
"""The most that is read: about half a million refs."""

_LINE = re.compile(rb"([0-9a-f]{40}) ([0-9a-f]{40}) (refs/[^\0\n]+)")
_NOTHING = b"0" * 40
_SHA256_LINE = re.compile(rb"[0-9a-f]{64} [0-9a-f]{64} ")
_OURS = ("refs/threads", "refs/archive", "refs/workflows", "refs/claims", "refs/cas", "refs/uwf")


def bad_hook_input(problem: str) -> BadUsage:
    """Tell that standard input is not in the format of a git receive hook."""
    return BadUsage(
        f"standard input is not that of a git receive hook: {problem}",
        code="bad-hook-input",
        hint="git runs this; by hand: echo OLD NEW REF | uwf hook pre-receive",
    )


class RefUpdate(NamedTuple):
    name: str
    old: Oid | None
    """The value that the pusher saw; None if the ref is new."""

    new: Oid | None
    """None deletes the ref."""


class Refusal(NamedTuple):
    """Why a ref may not be changed as the push wants."""

    name: str
    message: str
    hint: str


def parse_updates(content: bytes) -> list[RefUpdate]:
    """Read the lines ``<old> <new> <ref>`` that git gives to a receive hook."""
    if len(content) > MOST_INPUT_BYTES:
        raise bad_hook_input("too many refs in one push")
    if content and not content.endswith(b"\n"):
        raise bad_hook_input("its last line has no newline")
    updates = [_parse_line(line) for line in content.split(b"\n")[:-1]]
    if len({update.name for update in updates}) < len(updates):
        raise bad_hook_input("it has one ref twice")
    return updates


def _parse_line(line: bytes) -> RefUpdate:
    match = _LINE.fullmatch(line)
    if match is None:
        if _SHA256_LINE.match(line):
            raise bad_hook_input("it has SHA-256 object ids, which uwf cannot read yet")
        raise bad_hook_input(f"it has the line {line[:100].decode(errors='replace')!r}")
    old, new, name = match.groups()
    return RefUpdate(os.fsdecode(name), _oid(old), _oid(new))


def _oid(digits: bytes) -> Oid | None:
    return None if digits == _NOTHING else Oid(digits.decode())


def is_ours(name: str) -> bool:
    """Check whether *name* lies in a folder of uwf, ignoring case as some file systems do."""
    folded = fold_workflow_name(name)
    return any(folded == ours or folded.startswith(ours + "/") for ours in _OURS)


def ours_among(updates: Sequence[RefUpdate]) -> list[RefUpdate]:
    return [update for update in updates if is_ours(update.name)]
