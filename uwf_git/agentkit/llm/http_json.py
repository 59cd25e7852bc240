"""One HTTP POST: the request, the reply, and the errors of a call without a reply."""

from collections.abc import Mapping
from typing import Literal, NamedTuple
from urllib.parse import SplitResult, urlsplit

from uwf_git.errors import AgentFailed, BadUsage

HttpTrouble = Literal["unreachable", "unknown-host", "untrusted", "timed-out", "broken", "too-much"]

# A retry may succeed.
_TEMPORARY = {"unreachable", "broken"}


class NoReply(AgentFailed):
    """The host sent no reply, or an incomplete one."""

    code = "no-reply"

    def __init__(self, trouble: HttpTrouble, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}", host=where, trouble=trouble)
        self.trouble = trouble
        self.is_temporary = trouble in _TEMPORARY


def _bad_url(url: str, problem: str) -> BadUsage:
    return BadUsage(
        f"{url:.200} {problem}", code="bad-url", hint="for example: https://api.example.com/v1"
    )


class HttpRequest(NamedTuple):
    """What to post, and where."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class HttpReply(NamedTuple):
    """The reply, whatever its status."""

    status: int

    headers: Mapping[str, str]
    """Names in lower case."""

    body: bytes


def split_url(url: str) -> SplitResult:
    """Split *url* into its parts.

    Raises:
        BadUsage: it is not an http or https URL, or it holds a user name.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise _bad_url(url, "is not a URL") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _bad_url(url, "is not a URL that begins with http:// or https://")
    if parts.username or parts.password:
        # Not quoted, since that would print the password.
        shown = f"{parts.scheme}://…@{parts.hostname}"
        raise _bad_url(shown, "holds a user name; put the key in an environment variable")
    return parts
