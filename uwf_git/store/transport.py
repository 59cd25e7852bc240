"""Transport: talking to another repository, through dulwich's clients.

Owns: connecting by path, git://, ssh and smart HTTP; what goes wrong on the way, as one error.
Knows nothing of: which refs are wanted or sent, what becomes of them.
Always true: whatever the other side does, the caller gets an answer or a `RemoteFailed`; no
message holds a password; nobody is asked anything on a terminal that is none.
Only push, fetch and clone import this module: dulwich's client costs 70 ms.
Local paths are served by git itself when it is installed: dulwich's own way runs no hooks.
"""

import shlex
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar, cast

from dulwich.client import (
    GitClient,
    HTTPUnauthorized,
    LocalGitClient,
    SubprocessGitClient,
    TraditionalGitClient,
    Urllib3HttpGitClient,
    get_transport_and_path,
)
from dulwich.config import ConfigDict
from dulwich.errors import SendPackError
from dulwich.objects import ObjectID
from dulwich.pack import generate_unpacked_objects
from dulwich.protocol import ZERO_SHA, Protocol
from dulwich.refs import Ref

from uwf_git.debug_log import debug
from uwf_git.store.git_config import GitConfig
from uwf_git.store.git_credential import Credential, find_credential, tell_credential
from uwf_git.store.incoming import Incoming
from uwf_git.store.objects import DurableObjects, ObjectStore
from uwf_git.store.program import find_program
from uwf_git.store.refs import Oid, is_oid
from uwf_git.store.remote_url import RemoteUrl
from uwf_git.store.remotes import SHARED
from uwf_git.store.transport_errors import AtomicUnsupported, failures, unauthorized

if TYPE_CHECKING:
    from dulwich.object_store import GraphWalker

SILENCE_S = 120.0
"""A server that says nothing for so long is taken for dead; git's own say something every 5."""

_MOST_HAVES = 256
_PREFIXES = [f"refs/{each}/".encode() for each in SHARED]

__all__ = ["Access", "AtomicUnsupported", "Sent", "Wanted", "fetch_pack", "send_pack"]

P = ParamSpec("P")
T = TypeVar("T")


class Access(NamedTuple):
    """A remote, and what is needed to get there."""

    url: RemoteUrl
    config: GitConfig
    environ: Mapping[str, str]
    silence_s: float = SILENCE_S

    @property
    def is_served_here(self) -> bool:
        """Tell whether it is a local path that no git serves, so that we must keep its rules."""
        return self.url.kind == "path" and self.git is None

    @property
    def git(self) -> str | None:
        """Give the path of git, if it is installed."""
        return find_program("git", self.environ)


class Wanted(NamedTuple):
    """What a fetch asks for."""

    wants: list[Oid]
    haves: list[Oid]
    """Commits that we have with all that is behind them, the likeliest to be known there first."""


class Sent(NamedTuple):
    """What became of a push."""

    statuses: dict[str, str | None]
    """By ref: None if it was done, else why not, in the other side's words."""

    said: str
    """What its hooks said."""


def fetch_pack(
    access: Access, choose: Callable[[dict[str, Oid]], Wanted], incoming: Incoming
) -> None:
    """Show *choose* the refs of the other side, and receive what it wants into *incoming*.

    Raises:
        RemoteFailed: it cannot be reached, or does not keep to the protocol.
    """
    haves = _Haves()

    def determine(refs: Mapping[Ref, ObjectID], depth: int | None = None) -> list[ObjectID]:
        del depth  # dulwich passes it to every callback
        wanted = _ours(choose)(_readable(refs))
        haves.offer(wanted.haves)
        return [ObjectID(oid.encode()) for oid in wanted.wants]

    def fetch(client: GitClient, path: str) -> None:
        walker = cast("GraphWalker", haves)
        write = _ours(incoming.write)
        client.fetch_pack(path.encode(), determine, walker, write, ref_prefix=_PREFIXES)

    _talk(access, "pull", fetch)
    with _told(), failures(access.url):
        _unpack(incoming)


def _unpack(incoming: Incoming) -> None:
    try:
        incoming.unpack()
    except OSError as error:
        raise _Ours from error


def send_pack(
    access: Access,
    plan: Callable[[dict[str, Oid]], Mapping[str, Oid | None]],
    pack: Callable[[], tuple[ObjectStore, list[ObjectID]]],
    *,
    atomic: bool = False,
) -> Sent:
    """Show *plan* the refs of the other side, and make the changes there that it gives.

    Each is made only if the ref is still what *plan* saw; None deletes it. *pack* gives the
    objects that go with it.

    Raises:
        AtomicUnsupported: the other side cannot do all or nothing.
        RemoteFailed: it cannot be reached, or does not keep to the protocol.
    """
    said: list[bytes] = []
    asked: list[str] = []

    def update(refs: dict[Ref, ObjectID]) -> dict[Ref, ObjectID]:
        changes = _ours(plan)(_readable(refs))
        asked[:] = changes
        return {
            Ref(name.encode()): ZERO_SHA if oid is None else ObjectID(oid.encode())
            for name, oid in changes.items()
        }

    def generate(_have: object, _want: object, **options: object) -> tuple[int, Iterator[object]]:
        objects, needed = _ours(pack)()
        container = cast("DurableObjects", objects)
        ofs_delta = bool(options.get("ofs_delta", True))
        todo = [(oid, None) for oid in needed]
        return len(needed), generate_unpacked_objects(container, todo, ofs_delta=ofs_delta)

    def send(client: GitClient, path: str) -> dict[str, str | None]:
        try:
            result = client.send_pack(path.encode(), update, generate, said.append, atomic=atomic)  # type: ignore[arg-type]  # dulwich wants its own names of arguments
        except SendPackError as error:
            # The pack as a whole: no ref was changed.
            return dict.fromkeys(asked, _words_of([word for word in error.args if word]))
        statuses = result.ref_status or {}
        return {name.decode(errors="replace"): status for name, status in statuses.items()}

    return Sent(_talk(access, "push", send), _words_of(said))


class _Haves:
    """The commits that a fetch tells the other side it has; what dulwich calls a graph walker."""

    shallow: frozenset[ObjectID] = frozenset()

    def __init__(self) -> None:
        self._waiting: list[ObjectID] = []

    def offer(self, oids: list[Oid]) -> None:
        self._waiting = [ObjectID(oid.encode()) for oid in reversed(oids[:_MOST_HAVES])]

    def __next__(self) -> ObjectID | None:
        return self._waiting.pop() if self._waiting else None

    next = __next__

    def ack(self, sha: ObjectID) -> None:
        """Learn that the other side has one."""

    def nak(self) -> None:
        """Learn that it has none."""


def _readable(refs: Mapping[Ref, ObjectID]) -> dict[str, Oid]:
    """Give the refs that we share, as text; a server may send any bytes."""
    found: dict[str, Oid] = {}
    for name, value in refs.items():
        oid = value.decode(errors="replace")
        if name.startswith(tuple(_PREFIXES)) and is_oid(oid):
            found[name.decode(errors="backslashreplace")] = Oid(oid)
    return found


class _Ours(Exception):
    """Something of ours failed in the middle of a talk: its cause is to be told, as it is."""


def _ours(function: Callable[P, T]) -> Callable[P, T]:
    """Keep what *function* raises from being taken for a failure of the other side."""

    def call(*args: P.args, **options: P.kwargs) -> T:
        try:
            return function(*args, **options)
        except Exception as error:
            raise _Ours from error

    return call


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except _Ours as error:
        raise error.__cause__ or error from None


def _talk(access: Access, operation: str, action: Callable[[GitClient, str], T]) -> T:
    with _told(), failures(access.url), _patience(access.silence_s):
        try:
            return _act(access, operation, action)
        except HTTPUnauthorized as error:
            credential = find_credential(access.url, access.git, access.environ)
            if credential is None:
                raise unauthorized(access.url, told=False) from error
        try:
            done = _act(access, operation, action, credential)
        except HTTPUnauthorized as error:
            tell_credential("reject", credential, access.git, access.environ)
            raise unauthorized(access.url, told=True) from error
        tell_credential("approve", credential, access.git, access.environ)
        return done


def _act(
    access: Access,
    operation: str,
    action: Callable[[GitClient, str], T],
    credential: Credential | None = None,
) -> T:
    debug("RAJMAANE", "remote asked", operation=operation, url=access.url.shown)
    client, path = _connect(access, operation, credential)
    with ExitStack() as stack:
        stack.callback(client.close)
        if isinstance(client, TraditionalGitClient):
            _close_connections(stack, client)
        elif isinstance(client, Urllib3HttpGitClient):
            _close_responses(stack, client)
        return action(client, path)


def _close_connections(stack: ExitStack, client: TraditionalGitClient) -> None:
    """Close what *client* opens: dulwich forgets to when a server begins with nonsense."""
    connect = client._connect  # noqa: SLF001 - what its subclasses are there to override

    def connect_and_remember(
        cmd: bytes, path: str | bytes, protocol_version: int | None = None
    ) -> tuple[Protocol, Callable[[], bool], IO[bytes] | None]:
        made = connect(cmd, path, protocol_version)
        stack.callback(made[0].close)
        return made

    client._connect = connect_and_remember  # type: ignore[method-assign]  # noqa: SLF001 (as above)


def _close_responses(stack: ExitStack, client: Urllib3HttpGitClient) -> None:
    """Close what the server answers: dulwich forgets to when it is an error."""
    pool = client.pool_manager
    request = pool.request
    stack.callback(pool.clear)

    def request_and_remember(method: str, url: str, **options: Any) -> Any:
        response = request(method, url, **options)
        stack.callback(response.close)
        return response

    pool.request = request_and_remember  # type: ignore[method-assign]  # of this one pool


def _connect(
    access: Access, operation: str, credential: Credential | None
) -> tuple[GitClient, str]:
    if access.url.kind == "path":
        if access.git is None:
            return LocalGitClient(), access.url.text
        local = SubprocessGitClient()
        local.git_command = [access.git]
        return local, access.url.text
    return get_transport_and_path(
        access.url.text,
        config=_dulwich_config(access.config),
        operation=operation,
        username=credential.username if credential else None,
        password=credential.password if credential else None,
        ssh_command=_ssh_command(access) if access.url.kind == "ssh" else None,
    )


def _dulwich_config(config: GitConfig) -> ConfigDict:
    """Give dulwich the settings that it knows (`http.*`, `core.gitProxy`) in its own form."""
    made = ConfigDict()
    for setting, values in config.values.items():
        section, _dot, name = setting.rpartition(".")
        base, dot, subsection = section.partition(".")
        # URLs are rewritten already.
        if base and base != "url":
            place = (base.encode(), _raw(subsection)) if dot else (base.encode(),)
            for value in values:
                made.add(place, name.encode(), _raw(value))
    return made


def _raw(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _ssh_command(access: Access) -> str:
    """Give the command for ssh as git finds it; git hands it to a shell, dulwich does not."""
    asked = access.environ.get("GIT_SSH_COMMAND") or access.config.get("core.sshcommand")
    if asked:
        return shlex.join(["sh", "-c", f'{asked} "$@"', "ssh"])
    return shlex.quote(access.environ.get("GIT_SSH") or "ssh")


@contextmanager
def _patience(silence_s: float) -> Iterator[None]:
    """Make every socket that dulwich opens give up after so long; it has no such setting."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(silence_s)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _words_of(said: list[bytes]) -> str:
    lines = b"".join(said).decode(errors="replace").replace("\r", "\n").split("\n")
    return "\n".join(line.strip() for line in lines if line.strip())
