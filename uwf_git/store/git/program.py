"""Git and the programs that it would run, and the committer that it knows."""

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import NamedTuple

from uwf_git.debug_log import debug
from uwf_git.errors import Refused, StoreFailed
from uwf_git.store.git.config import GitConfig, find_program
from uwf_git.surroundings import without_local_variables

# Run git, the programs that git would run, and commands from git config; capture their output.
#
# A program never reads the terminal. Agents run in agents/, not here.

_MOST_BYTES = 100_000
_IN_BACKGROUND = '"$@" &'


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
                env=dict(environ),
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
            ["/bin/sh", "-c", _IN_BACKGROUND, "sh", *argv],
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
        import pwd  # noqa: PLC0415 (Unix only)

        entry = pwd.getpwuid(os.getuid())
    except (ImportError, KeyError):
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
