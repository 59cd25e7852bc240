"""Git and the programs that it would run, also where an agent could write; who commits."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import NamedTuple

from uwf_git.debug_log import debug
from uwf_git.errors import Refused, StoreFailed
from uwf_git.store.durable import find_user_file, read_if_there, replace_file
from uwf_git.store.git.config import (
    BadConfig,
    GitConfig,
    find_program,
    read_config_file,
    spell_setting,
)
from uwf_git.surroundings import folders_around, without_local_variables

# Windows has none.
with suppress(ImportError):
    import pwd

# Run git, the programs that git would run, and commands from git config; capture their output.
#
# A program never reads the terminal. Agents run in agents/, not here.

_MOST_BYTES = 100_000


class ProgramFailed(StoreFailed):
    code = "program-failed"

    def __init__(self, program: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"{program} {problem}", hint=hint, program=program)


class ProgramTooSlow(ProgramFailed):
    code = "program-too-slow"

    def __init__(self, program: str, timeout_s: float) -> None:
        super().__init__(program, f"was killed after {timeout_s:g} s")


class Ran(NamedTuple):
    status: int
    """Its exit status; negative: the signal that killed it."""

    stdout: bytes
    stderr: bytes

    @property
    def last_line(self) -> str:
        """The last line of its output that is not empty, for an error."""
        lines = (self.stderr or self.stdout).decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def run_program(
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    given: bytes = b"",
    cwd: str | None = None,
    timeout_s: float | None = None,
) -> Ran:
    """Run *argv* with *given* as its input; kill it after *timeout_s* if that is set."""
    try:
        with _starting(argv[0]):
            ran = subprocess.run(
                argv,
                env=dict(environ),
                input=given,
                cwd=cwd,
                capture_output=True,
                check=False,
                timeout=timeout_s,
            )
    except subprocess.TimeoutExpired as error:
        raise ProgramTooSlow(argv[0], timeout_s or 0) from error
    debug("NB3E9M6J", "program ran", program=argv[0], status=ran.returncode)
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def run_listener(
    argv: Sequence[str], environ: Mapping[str, str], *, given: bytes, cwd: str, timeout_s: float
) -> Ran:
    """Run *argv*, a command from git config, with *given* as its input, for at most *timeout_s*.

    At the timeout its process group is killed. Its streams are files: a process that it leaves in
    the background does not delay the return, and input that it does not read is no error.
    """
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        stdin.write(given)
        stdin.seek(0)
        with _starting(argv[0]):
            process = subprocess.Popen(
                argv,
                env=without_local_variables(environ, keep_settings=True),
                cwd=cwd,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        try:
            status = process.wait(timeout_s)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise ProgramTooSlow(argv[0], timeout_s) from error
        debug("DHVEXRK7", "listener ran", program=argv[0], status=status)
        stdout.seek(0)
        stderr.seek(0)
        return Ran(status, stdout.read(_MOST_BYTES), stderr.read(_MOST_BYTES))


def start_background_program(argv: Sequence[str], environ: Mapping[str, str]) -> None:
    """Start *argv* in the background, in a session of its own, without streams.

    Its directory is /, so it keeps no other directory busy. A shell starts it and ends, so that
    init reaps it, and a long-running caller gets no zombie.
    """
    with _starting(argv[0]):
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *argv],
            env=dict(environ),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=True,
        )


@contextmanager
def _starting(program: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise ProgramFailed(program, f"could not be started: {reason or error}") from error


# Set a setting in the user's git config, by git: the only write outside a store.


def set_user_config(environ: Mapping[str, str], name: str, value: str) -> None:
    git = find_program("git", environ)
    hint = f"put it into your ~/.gitconfig yourself: {name}"
    if git is None:
        raise ProgramFailed("git", "is not on the PATH", hint=hint)
    argv = [git, "config", "--global", "--replace-all", name, value]
    ran = run_program(argv, without_local_variables(environ))
    if ran.status != 0:
        raise ProgramFailed("git config --global", f"failed: {ran.last_line}", hint=hint)


# Identities: who commits, as git finds it; cleaned so that commits pass `git fsck --strict`.
#
# dulwich writes anything, and one commit with a bad name makes its thread unpushable (FACTS 4).
# Source: git-commit(1), "COMMIT INFORMATION"; git's ident.c.

_NOT_IN_NAME = re.compile(r"[<>\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# Marks that turn the direction of writing show one name for another (https://trojansource.codes).
_MARKS = re.compile("[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_NOT_IN_EMAIL = re.compile(rf"\s|{_MARKS.pattern}|{_NOT_IN_NAME.pattern}")
_NOT_IN_PROGRAM = re.compile(r"[^A-Za-z0-9._+-]")
_EDGES = " .,:;'\"\\<>"
_MAIL_NAME = "/etc/mailname"


class NoIdentity(Refused):
    """No name or address is set, and git may not guess one."""

    code = "no-identity"

    def __init__(self, setting: str) -> None:
        super().__init__(
            f"{setting} is not set, and user.useConfigOnly forbids to guess it",
            hint=f"set it: `git config --global {setting} VALUE`",
            setting=setting,
        )


class Committer(NamedTuple):
    identity: bytes

    is_guess: bool
    """The address is made of the account on this machine, as nothing else is set."""


def find_committer(config: GitConfig, environ: Mapping[str, str]) -> Committer:
    """Return the committer as git finds it: variables, settings, the account.

    Where git refuses its own guess, as the host has no domain, the guess is used. NoIdentity: a
    part is not set, and `user.useConfigOnly` forbids to guess it.
    """
    name = _find_part("name", config, environ)
    email = _find_part("email", config, environ) or environ.get("EMAIL")
    if name and email:
        return Committer(clean_identity(name, email), is_guess=False)
    login, full_name = _find_account(environ)
    identity = clean_identity(name or full_name, email or f"{login}@{find_host()}")
    return Committer(identity, is_guess=not email)


def _find_part(part: str, config: GitConfig, environ: Mapping[str, str]) -> str | None:
    found = (
        environ.get(f"GIT_COMMITTER_{part.upper()}")
        or config.get(f"committer.{part}")
        or config.get(f"user.{part}")
    )
    if not found and config.get_flag("user.useConfigOnly", default=False):
        raise NoIdentity(f"user.{part}")
    return _MARKS.sub(" ", found) if found else found


def _find_account(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the login name and the full name of the account on this machine."""
    try:
        entry = pwd.getpwuid(os.getuid())
    except (NameError, KeyError):
        # A container may run under a number without an account.
        login = environ.get("USER") or environ.get("LOGNAME") or "unknown"
        return login, login
    login = entry.pw_name
    # In the full name, & is the login name with a capital letter.
    full = entry.pw_gecos.partition(",")[0].replace("&", login[:1].upper() + login[1:])
    return login, full.strip() or login


@cache
def find_host() -> str:
    """Return the mail name of this machine, else its host name with the domain, if it has one."""
    import socket  # noqa: PLC0415 (3 ms, for those without an address)

    try:
        with open(_MAIL_NAME, encoding="utf-8", errors="replace") as file:
            mail_name = file.readline().rstrip("\n")
    except OSError:
        mail_name = ""
    host = mail_name or socket.gethostname()
    if mail_name or "." in host:
        return host
    try:
        found = socket.getaddrinfo(host, None, flags=socket.AI_CANONNAME)
    except OSError:
        return host
    canonical = found[0][3]
    return canonical if "." in canonical else host


def clean_identity(name: str, email: str) -> bytes:
    """Return `name <email>` as git accepts it; an empty part becomes ``unknown``."""
    clean_name = " ".join(_NOT_IN_NAME.sub(" ", name).split()).strip(_EDGES)
    clean_email = _NOT_IN_EMAIL.sub("", email).strip(_EDGES)
    return f"{clean_name or 'unknown'} <{clean_email or 'unknown'}>".encode()


def is_clean(identity: bytes) -> bool:
    """Check whether ``find_committer`` could have made *identity*."""
    name, _, email = identity.decode(errors="replace").rpartition(" <")
    return clean_identity(_MARKS.sub(" ", name), email.removesuffix(">")) == identity


def agent_identity(role: str, program: str) -> bytes:
    """Return the author of a step, for readers of `git log`: the role, and its player's program."""
    address = _NOT_IN_PROGRAM.sub("", program)
    return clean_identity(role, f"{address or 'unknown'}@uwf")


# Start git in a folder that an agent could write, so that no program runs that the folder names.
#
# What runs is in the config of a repository: filters, hooks, ssh, the transport of a missing
# object. The agent chooses the names, and may change the file after anybody has looked. So git gets
# a git directory of ours, where no agent writes: its config is the project's config at the
# beginning of the thread, with harmless values of now, and objects, refs and what filters keep are
# links.
#
# git itself starts another git in each repository inside that it looks into, with the config there.
# The callers ask it not to, and look into those themselves.

_HARMLESS = (
    *("repositoryformatversion", "filemode", "symlinks", "ignorecase", "precomposeunicode"),
    *("autocrlf", "eol", "trustctime", "checkstat", "bigfilethreshold", "sharedrepository"),
    *("excludesfile", "attributesfile"),
)
_SPARSE = {"core.sparsecheckout", "core.sparsecheckoutcone", "index.sparse"}
_FORMATS = ("objectformat", "compatobjectformat", "refstorage", "preciousobjects")
_COPIED = {f"core.{each}" for each in _HARMLESS} | {f"extensions.{each}" for each in _FORMATS}
_COPIED |= _SPARSE
# Where other settings are, and what is no program but would lead git elsewhere.
_NOT_KEPT = ("include.", "includeif.", "core.worktree", "extensions.worktreeconfig")
_OURS = """\
[core]
	bare = false
	hooksPath = /dev/null
	fsmonitor = false
	safecrlf = false
	untrackedCache = false
	quotePath = true
[i18n]
	commitEncoding = UTF-8
[log]
	showSignature = false
[submodule]
	recurse = false
[maintenance]
	auto = false
[trailer]
	separators = :
"""
# Folders of a git directory that decide what runs, or where; and those that are not shared.
_NOT_LINKED = {"hooks", "info", "modules", "remotes", "branches"}
_INFO = ("info/attributes", "info/exclude", "info/grafts")
_PATTERNS = "info/sparse-checkout"
_FORGOTTEN_S = 24 * 3600
_LONGEST_S = 60.0

LINK = "160000"
"""The mode of what a tree or an index has for a repository inside."""


class Kept(NamedTuple):
    """The settings that a project had when the thread began."""

    repository: str = ""
    """Its git directory, the common one."""

    text: str = ""


NOTHING_KEPT = Kept()


class Place(NamedTuple):
    git_dir: str
    worktree: str | None = None
    index_file: str | None = None
    """By default the index of the git directory."""

    kept: Kept = NOTHING_KEPT
    """These settings count if they belong to this repository."""


@contextmanager
def fenced(environ: Mapping[str, str], place: Place) -> Iterator[dict[str, str]]:
    """Make a git directory for *place*, and yield the environment of a git that uses it."""
    try:
        common = find_common_dir(place.git_dir)
        folder = _make_git_dir(environ, common, place)
    except OSError as error:
        problem = f"was not started for {place.git_dir}: {error.strerror}"
        raise ProgramFailed("git", problem) from error
    made = {
        "GIT_DIR": folder,
        "GIT_INDEX_FILE": place.index_file or os.path.join(place.git_dir, "index"),
        # An index of ours may be brought up to date.
        "GIT_OPTIONAL_LOCKS": "0" if place.index_file is None else "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "LC_ALL": "C",
        **({} if place.worktree is None else {"GIT_WORK_TREE": place.worktree}),
    }
    yield without_local_variables(environ) | made
    with os.scandir(folder) as entries:
        for each in entries:
            if each.is_dir(follow_symlinks=False) and each.name != "info":
                # A filter keeps it beside the objects, as git-lfs does, and the folder is new. It
                # stays here as well: another process may be writing there.
                shutil.copytree(each.path, os.path.join(common, each.name), dirs_exist_ok=True)


def run_fenced(
    environ: Mapping[str, str],
    place: Place,
    *words: str,
    cwd: str | None = None,
    given: bytes = b"",
    timeout_s: float | None = None,
) -> Ran:
    """Run `git` *words* in *place*, at the top of its work tree or in *cwd*."""
    with fenced(environ, place) as made:
        into = cwd or place.worktree or made["GIT_DIR"]
        return run_program(["git", *words], made, given=given, cwd=into, timeout_s=timeout_s)


NO_WORK_TREE = "it is not in a work tree"


def find_place(environ: Mapping[str, str], folder: str, kept: Kept = NOTHING_KEPT) -> Place | str:
    """Return the repository and the work tree around *folder*, or why git finds no repository.

    The work tree is where its `.git` is, whatever its config says.
    """
    # This looks for no file of the work tree and for no object, and so runs nothing.
    asked = ["git", "-C", folder, "rev-parse", "--is-inside-work-tree", "--absolute-git-dir"]
    env = without_local_variables(environ) | {"LC_ALL": "C"}
    ran = run_program(asked, env, timeout_s=_LONGEST_S)
    inside, _, git_dir = os.fsdecode(ran.stdout).removesuffix("\n").partition("\n")
    top = _find_top(folder)
    if ran.status or inside != "true" or top is None:
        # The first line has the reason; what follows are words about settings.
        told = os.fsdecode(ran.stderr).split("\n")[0].removeprefix("fatal: ")
        return told or NO_WORK_TREE
    return Place(git_dir, top, kept=kept)


def find_inner(environ: Mapping[str, str], path: str) -> Place | None:
    """Return the repository whose work tree is *path*; None if git sees no repository there."""
    # Of a `.git` that is no repository git would go on to the one outside.
    found = find_place(environ, path)
    if isinstance(found, Place) and found.worktree == os.path.realpath(path):
        return found
    return None


def find_common_dir(git_dir: str) -> str:
    """Return the directory that all work trees of a repository have in common."""
    target = os.fsdecode(_read(os.path.join(git_dir, "commondir")).rstrip(b"\r\n"))
    return os.path.realpath(os.path.join(git_dir, target))


def list_links(
    environ: Mapping[str, str], place: Place, *, cwd: str | None = None
) -> dict[str, str]:
    ran = run_fenced(environ, place, "ls-files", "--stage", "-z", cwd=cwd)
    if ran.status:
        raise ProgramFailed("git", f"ls-files failed: {ran.last_line}")
    rows = (os.fsdecode(row).partition("\t") for row in ran.stdout.split(b"\0"))
    return {path: about.split()[1] for about, _, path in rows if about.startswith(LINK)}


def list_uncommitted(
    environ: Mapping[str, str], place: Place, *, untracked: str = "normal", left_out: str = ""
) -> list[str]:
    """List what is neither as HEAD has it nor ignored, also in submodules, but not *left_out*."""
    words = ("--porcelain", "-z", "--no-renames", f"--untracked-files={untracked}")
    within = (".", f":(exclude,top,literal){left_out}") if left_out else ()
    ran = run_fenced(environ, place, "status", *words, "--ignore-submodules=dirty", "--", *within)
    if ran.status:
        raise ProgramFailed("git", f"status failed: {ran.last_line}")
    ignored = _read_ignored(place)
    changed = (os.fsdecode(row)[3:] for row in ran.stdout.split(b"\0") if row)
    names = [name for name in changed if ignored.get(name) != "all"]
    inside = list_changed_inside(environ, place, ignored=ignored)
    return [*names, *(name for name in inside if name not in names)]


def list_changed_inside(
    environ: Mapping[str, str],
    place: Place,
    *,
    cwd: str | None = None,
    ignored: Mapping[str, str] | None = None,
) -> list[str]:
    """List the submodules with uncommitted changes; *ignored*: ``submodule.<name>.ignore``."""
    found = []
    for name in list_links(environ, place, cwd=cwd):
        path = os.path.join(cwd or place.worktree or "", name)
        how = (ignored or {}).get(name)
        if how in {"all", "dirty"} or not os.path.lexists(os.path.join(path, ".git")):
            continue
        inner = find_inner(environ, path)
        untracked = "no" if how == "untracked" else "normal"
        if inner is not None and list_uncommitted(environ, inner, untracked=untracked):
            found.append(name)
    return found


def share_sparseness(common: str, git_dir: str) -> None:
    """Copy the sparse-checkout settings of the main work tree, if any, to the new *git_dir*."""
    found = _read_own(common, common)
    if found.get_flag("core.sparseCheckout", default=False):
        settings = {name: found.get_all(name) for name in found.values if name in _SPARSE}
        os.makedirs(os.path.join(git_dir, "info"), exist_ok=True)
        _write(git_dir, "config.worktree", _spell(settings).encode(errors="surrogateescape"))
        _write(git_dir, _PATTERNS, _read(os.path.join(common, _PATTERNS)))


def keep_settings(path: str, folder: str, *, known: Kept = NOTHING_KEPT) -> None:
    """Keep the settings of the repository around *folder*, or *known* ones, in the file *path*."""
    top = _find_top(folder)
    if top is None:
        return
    with suppress(OSError, ValueError, BadConfig):
        git_dir = os.path.join(top, ".git")
        if os.path.isfile(git_dir):
            target = _read(git_dir).removeprefix(b"gitdir: ").rstrip(b"\r\n")
            git_dir = os.path.join(top, os.fsdecode(target))
        common = find_common_dir(git_dir)
        found = _read_own(common, git_dir).values.items()
        kept = {name: values for name, values in found if not name.startswith(_NOT_KEPT)}
        is_known = known.repository == common
        document = json.dumps(known if is_known else Kept(common, _spell(kept)))
        os.makedirs(beside := os.path.dirname(path), exist_ok=True)
        # They may hold tokens.
        os.chmod(beside, 0o700)
        replace_file(path, document.encode(), durable=False)


def read_settings(path: str | None) -> Kept:
    content = b"" if path is None else read_if_there(path)
    # Suppressed: a power loss may have left anything.
    with suppress(ValueError, TypeError):
        repository, text = json.loads(content)
        return Kept(str(repository), str(text))
    return Kept()


def _find_top(folder: str) -> str | None:
    """Return the nearest folder around *folder* whose `.git` git would accept."""
    for top in folders_around(os.path.realpath(folder)):
        git_dir = os.path.join(top, ".git")
        if os.path.isfile(git_dir) or all(
            os.path.exists(os.path.join(git_dir, name)) for name in ("HEAD", "objects", "refs")
        ):
            return top
    return None


def _read_ignored(place: Place) -> dict[str, str]:
    """Return what is not looked for in submodules, by their paths."""
    config = GitConfig({})
    with suppress(BadConfig):
        modules = read_config_file(os.path.join(place.worktree or "", ".gitmodules"))
        config = _read_own(find_common_dir(place.git_dir), place.git_dir).over(modules)
    names = [name.removesuffix(".ignore") for name in config.values if name.endswith(".ignore")]
    return {config.get(f"{name}.path") or "": config.get(f"{name}.ignore") or "" for name in names}


def _make_git_dir(environ: Mapping[str, str], common: str, place: Place) -> str:
    """Return a git directory, among the user's own files, like *common* and that of *place*."""
    parent = find_user_file(common, environ, "git-dirs")
    if parent is None:
        raise ProgramFailed("git", "is not started where the user has no home directory")
    files, links = _list_files(common, place), _list_links(common, place)
    key = hashlib.sha256(repr((files, sorted(links.items()))).encode()).hexdigest()
    folder = os.path.join(parent, key)
    with suppress(FileNotFoundError):
        # It is in use: it is no more old when others are swept.
        os.utime(folder)
    _sweep(parent)
    if os.path.isdir(folder):
        return folder
    new = tempfile.mkdtemp(dir=parent)
    os.mkdir(os.path.join(new, "info"))
    for name, content in files.items():
        _write(new, name, content)
    for name, target in links.items():
        os.symlink(target, os.path.join(new, name))
    try:
        os.rename(new, folder)
    except OSError:
        # Another process was faster.
        shutil.rmtree(new)
        os.utime(folder)
    return folder


def _sweep(parent: str) -> None:
    """Make the folder of git directories; remove from it what was not used for a day."""
    os.makedirs(parent, mode=0o700, exist_ok=True)
    with os.scandir(parent) as entries:
        for each in entries:
            # Suppressed: another process sweeps too, or has named what it was making.
            with suppress(FileNotFoundError):
                if each.stat().st_mtime < time.time() - _FORGOTTEN_S:
                    shutil.rmtree(each.path, ignore_errors=True)


def _list_files(common: str, place: Place) -> dict[str, bytes]:
    found: dict[str, list[str]] = {}
    with suppress(BadConfig):
        found = _read_own(common, place.git_dir).values
    own = _spell({name: values for name, values in found.items() if name in _COPIED})
    kept = place.kept.text if place.kept.repository == common else ""
    config = f"{kept}{own}{_OURS}".encode(errors="surrogateescape")
    return {"config": config, "HEAD": _read_head(place.git_dir)}


def _list_links(common: str, place: Place) -> dict[str, str]:
    with os.scandir(common) as entries:
        shared = {each.name for each in entries if each.is_dir()} - _NOT_LINKED
    owners = dict.fromkeys((*shared, "packed-refs", "shallow", *_INFO), common)
    owners[_PATTERNS] = place.git_dir
    names = filter(lambda name: name.startswith("sharedindex."), os.listdir(place.git_dir))
    owners |= dict.fromkeys(names, place.git_dir)
    return {name: os.path.join(owner, name) for name, owner in owners.items()}


def _read_own(common: str, git_dir: str) -> GitConfig:
    """Read the settings of a repository, with the settings of one work tree."""
    config = read_config_file(os.path.join(common, "config"))
    if config.get_flag("extensions.worktreeConfig", default=False):
        config = read_config_file(os.path.join(git_dir, "config.worktree")).over(config)
    return config


def _spell(values: Mapping[str, list[str]]) -> str:
    return "".join(spell_setting(name, each) for name, all_ in values.items() for each in all_)


def _read_head(git_dir: str) -> bytes:
    path = os.path.join(git_dir, "HEAD")
    if os.path.islink(path):
        return b"ref: " + os.fsencode(os.readlink(path))
    return _read(path)


def _read(path: str) -> bytes:
    return read_if_there(path) if os.path.isfile(path) else b""


def _write(folder: str, name: str, content: bytes) -> None:
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)
