"""Errors of a connection: whatever dulwich and the system raise becomes one `RemoteFailed`.

The message is one line without a password.
"""

import re
import shlex
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from dulwich.client import HTTPProxyUnauthorized, InvalidWants, StrangeHostname
from dulwich.errors import (
    ApplyDeltaError,
    ChecksumMismatch,
    FileFormatException,
    GitProtocolError,
    HangupException,
    NotGitRepository,
)
from dulwich.pack import UnresolvedDeltas

from uwf_git.errors import StoreFailed
from uwf_git.store.remotes.remotes import RemoteUrl, without_passwords

_LONGEST = 300
_TOO_LATE = "it did not answer in time"
_NO_ATOMIC = "does not support atomic"

# Source: git-config(1), safe.directory; what git's setup.c says.
_OWNED_BY_ANOTHER = "detected dubious ownership in repository"

_SYSTEM_SAID = re.compile(r"""\[Errno -?\d+\] ([^'")]+)|(certificate verify failed[^'"(]*)""")

# What dulwich raises when a server does not keep to the protocol.
_BROKEN = (
    ApplyDeltaError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    ChecksumMismatch,
    EOFError,
    FileFormatException,
    IndexError,
    KeyError,
    InvalidWants,
    NotImplementedError,
    RecursionError,
    TypeError,
    UnresolvedDeltas,
    ValueError,
    struct.error,
    zlib.error,
)


class RemoteFailed(StoreFailed):
    code = "remote-failed"

    def __init__(self, url: RemoteUrl, problem: str, *, hint: str | None = None) -> None:
        words = " ".join(without_passwords(problem, url.text).split())
        words = "".join(char if char.isprintable() else "?" for char in words)[:_LONGEST]
        super().__init__(
            f"{url.shown}: {words}", hint=hint or _TRY[url.kind].format(url.shown), url=url.shown
        )


class AtomicUnsupported(RemoteFailed):
    code = "atomic-unsupported"


_TRY = {
    "path": "check that it is a git repository that you may read and write",
    "git": "check that the host is up and serves it: `git ls-remote {}`",
    "ssh": "check that you can log in there: `ssh HOST git --version`",
    "http": "check that the address is right and the host is up: `git ls-remote {}`",
}


@contextmanager
def failures(url: RemoteUrl) -> Iterator[None]:
    """Raise every error of the connection to *url* as a `RemoteFailed`."""
    try:
        yield
    except NotGitRepository as error:
        raise RemoteFailed(url, "there is no git repository") from error
    except TimeoutError as error:
        raise RemoteFailed(url, _TOO_LATE) from error
    except HangupException as error:
        words = _last_words(error)
        raise RemoteFailed(url, words, hint=_ownership_hint(url, words)) from error
    except HTTPProxyUnauthorized as error:
        raise RemoteFailed(url, "the proxy requires a name and password") from error
    except StrangeHostname as error:
        raise RemoteFailed(url, "the host name is not valid") from error
    except GitProtocolError as error:
        if _NO_ATOMIC in str(error):
            raise AtomicUnsupported(url, str(error)) from error
        # dulwich turns every error of a socket into one of these.
        in_time = "timed out" not in str(error)
        problem = _cause(str(error)) or "it broke off"
        raise RemoteFailed(url, problem if in_time else _TOO_LATE) from error
    except Exception as error:
        found = _find_problem(error)
        if found is None:
            raise
        raise RemoteFailed(url, found) from error


def _find_problem(error: Exception) -> str | None:
    """Return what an error says about the connection; None for an error about something else."""
    if isinstance(error, OSError):
        return error.strerror or str(error) or "it broke off"
    if isinstance(error, _BROKEN):
        return f"it does not speak git's protocol as it should ({_name(error)})"
    if type(error).__module__ == "urllib3.exceptions":
        # dulwich lets some of them through, such as the timeout of a read.
        return _TOO_LATE if "timed out" in str(error) else _cause(str(error)) or _name(error)
    return None


def unauthorized(url: RemoteUrl, *, told: bool) -> RemoteFailed:
    """Return the error for a server that requires a credential, or refused ours (*told*)."""
    problem = "it refused the name and password" if told else "it asks for a name and password"
    return RemoteFailed(
        url,
        problem,
        hint="store them in git's credential helper (`git credential approve`); without one uwf "
        "prompts on a terminal, unless GIT_TERMINAL_PROMPT=0",
    )


def not_smart(url: RemoteUrl) -> RemoteFailed:
    """Return the error for a web server that knows nothing of git."""
    return RemoteFailed(
        url,
        "it serves files, not git's protocol",
        hint="ask its owner for `git http-backend`, or for another URL",
    )


def _last_words(error: HangupException) -> str:
    lines = [line.decode(errors="replace") for line in error.stderr_lines or ()]
    said = [line.strip() for line in lines if line.strip()]
    wrong = [line for line in said if line.startswith(("fatal:", "error:", "ssh:"))]
    first = next(iter(wrong or said), "it closed the connection without a message")
    return first.removeprefix("fatal: ").removeprefix("error: ")


def _ownership_hint(url: RemoteUrl, words: str) -> str | None:
    """Return what to type if git asks whether the user trusts the owner of a folder."""
    # Only here: a server could say so of any folder.
    if url.kind != "path" or not words.startswith(_OWNED_BY_ANOTHER):
        return None
    return (
        "it is another user's, whose hooks would run as you; if you trust them: "
        f"`git config --global --add safe.directory {shlex.quote(url.text)}`"
    )


def _cause(problem: str) -> str:
    """Return the system's error text, without the class names that libraries put around it."""
    found = _SYSTEM_SAID.search(problem)
    return next(filter(None, found.groups())).strip() if found else problem


def _name(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
