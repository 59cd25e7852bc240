"""Transport: fetch from and push to a repository by path, git://, ssh or smart HTTP.

Every failure of the remote becomes a `RemoteFailed` without a password in it. Only push, fetch
and clone import this module: dulwich's client costs 70 ms. git itself serves local paths where
it is installed: dulwich's own way runs no hooks.
"""

import logging
import os
import re
import select
import shlex
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from http import HTTPStatus
from io import BufferedReader, FileIO
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec, TypeVar, cast
from urllib.parse import unquote, urljoin, urlsplit

from dulwich.client import (
    GitClient,
    HTTPProxyUnauthorized,
    HTTPUnauthorized,
    InvalidWants,
    LocalGitClient,
    SSHGitClient,
    StrangeHostname,
    SubprocessGitClient,
    SubprocessSSHVendor,
    SubprocessWrapper,
    TraditionalGitClient,
    Urllib3HttpGitClient,
    get_transport_and_path,
    get_transport_and_path_from_url,
)
from dulwich.config import ConfigDict
from dulwich.errors import GitProtocolError, HangupException, NotGitRepository, SendPackError
from dulwich.objects import ObjectID
from dulwich.pack import UnresolvedDeltas, generate_unpacked_objects
from dulwich.protocol import ZERO_SHA, Protocol
from dulwich.refs import Ref

from uwf_git.debug_log import debug
from uwf_git.errors import StoreFailed
from uwf_git.model.names import Oid, is_oid
from uwf_git.model.text import quote_path
from uwf_git.store.git.config import GitConfig, find_program
from uwf_git.store.git.program import Ran, run_program
from uwf_git.store.objects.objects import DAMAGE, ObjectStore
from uwf_git.store.remotes.incoming import (
    ChooseWants,
    ErrorOutput,
    Incoming,
    Meter,
    PackParcel,
    Parcel,
    PushReport,
    open_meter,
)
from uwf_git.store.remotes.remotes import CLAIMS, SHARED, RemoteUrl, without_passwords
from uwf_git.store.store import Store
from uwf_git.store.trust import require_trusted
from uwf_git.surroundings import UNSET_LOCAL_VARIABLES, without_local_variables

if TYPE_CHECKING:
    from dulwich.object_store import GraphWalker


# git credentials: names and passwords from git's credential helpers.
#
# Source: git-credential(1), "TYPICAL USE OF GIT CREDENTIAL".


class Credential(NamedTuple):
    username: str
    password: str
    description: str
    """The output of `git credential fill`, to pass to `approve` or `reject`."""


def find_credential(
    url: RemoteUrl, git: str | None, environ: Mapping[str, str]
) -> Credential | None:
    """Return the credential for *url* from git's helpers or its prompt, or None."""
    if git is None:
        return None
    # A password in the URL was refused. Escapes are left to git, which refuses a line end in one.
    user, _at, _host = urlsplit(url.text).netloc.rpartition("@")
    place = url.text.replace(f"{user}@", f"{user.partition(':')[0]}@", 1)
    ran = _run(git, "fill", environ, f"url={place}\n\n")
    if ran.status != 0:
        return None
    description = ran.stdout.decode(errors="replace")
    fields = dict(line.split("=", 1) for line in description.split("\n") if "=" in line)
    if not fields.get("username") or "password" not in fields:
        return None
    return Credential(fields["username"], fields["password"], description)


def report_credential(
    verdict: Literal["approve", "reject"],
    credential: Credential,
    git: str | None,
    environ: Mapping[str, str],
) -> None:
    if git is not None:
        _run(git, verdict, environ, credential.description)


def _run(git: str, verb: str, environ: Mapping[str, str], description: str) -> Ran:
    child = without_local_variables(environ, keep_settings=True)
    # Not where we are: a repository there would name a helper, and it is none of the store's.
    argv = [os.path.abspath(git), "credential", verb]
    return run_program(argv, child, given=description.encode(), cwd="/")


# Follow redirects of a web server as git does: those of the first question, a few, on the web.
#
# What the user sends to one server alone (a password, `http.extraHeader`) is not sent to another.

Request = Callable[..., Any]

# As git, which tells curl so.
_MOST = 20

_REDIRECTS = (301, 302, 303, 307, 308)
_PORTS = {"http": 80, "https": 443}


def request_safely(
    request: Request,
    method: str,
    url: str,
    *,
    remote: RemoteUrl,
    private: Collection[str],
    **options: Any,
) -> Any:
    """Send a request by *request*, and follow redirects; return the answer of the last server.

    Only the server of *remote* gets Authorization and the headers whose name is in *private*
    (except the user agent).
    """
    hidden = {"authorization", *(name.lower() for name in private)} - {"user-agent"}
    for _hop in range(_MOST + 1):
        headers = options.pop("headers", None) or {}
        if _origin(url) != _origin(remote.text):
            headers = {name: value for name, value in headers.items() if name.lower() not in hidden}
        options["headers"] = headers
        response = request(method, url, redirect=False, **options)
        place = response.headers.get("Location")
        if response.status == HTTPStatus.UNAUTHORIZED and _origin(url) != _origin(remote.text):
            # No answer about the credential for *remote*, which this server did not get.
            response.close()
            asks = f"it redirects to {urlsplit(url).hostname}, which asks for a name and password"
            raise RemoteFailed(remote, asks, hint="make that address the remote")
        if method != "GET" or response.status not in _REDIRECTS or not place:
            # dulwich sends what follows to where this came from.
            response.geturl = lambda final=url: final
            return response
        response.close()
        url = urljoin(url, place)
        if urlsplit(url).scheme not in _PORTS:
            raise RemoteFailed(remote, f"it redirects to {url[:200]}, which is not on the web")
    raise RemoteFailed(remote, "it redirects without end")


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


SILENCE_S = 120.0
"""How long a server may send nothing; git's own send a progress line every 5 seconds."""

# What dulwich logs quotes the server; the first handler would be standard error.
logging.getLogger("dulwich").addHandler(logging.NullHandler())

_SSH_COMMAND = "core.sshCommand"
_MOST_HAVES = 256
_SHA256 = 64
_PREFIXES = [*(f"refs/{each}/".encode() for each in SHARED), CLAIMS.encode()]

P = ParamSpec("P")
T = TypeVar("T")


class Access(NamedTuple):
    url: RemoteUrl
    config: GitConfig
    environ: Mapping[str, str]
    silence_s: float = SILENCE_S

    @property
    def is_served_here(self) -> bool:
        return self.url.kind == "path" and self.git is None

    @property
    def git(self) -> str | None:
        return find_program("git", self.environ)

    def check_trusted(self, store: Store) -> None:
        """Raise Refused if a program would run that only the config of *store* names."""
        if self.url.kind == "ssh" and not self.environ.get("GIT_SSH_COMMAND"):
            require_trusted(store, _SSH_COMMAND, store.path)
        if self.url.kind == "git":
            require_trusted(store, "core.gitProxy", store.path)


def fetch_pack(access: Access, choose: ChooseWants, incoming: Incoming) -> None:
    haves = _Haves()
    meter = open_meter(access.config)

    def determine(refs: Mapping[Ref, ObjectID], depth: int | None = None) -> list[ObjectID]:
        del depth  # dulwich passes it to every callback
        request = _own(choose)(_shared_refs(access, refs))
        haves.offer(request.haves)
        return [ObjectID(oid.encode()) for oid in request.wants]

    def write(content: bytes) -> int:
        meter.allow(content)
        return _own(incoming.write)(content)

    def fetch(client: GitClient, path: bytes) -> None:
        walker = cast("GraphWalker", haves)
        client.fetch_pack(path, determine, walker, write, ref_prefix=_PREFIXES)

    _connect_and(fetch, access, "pull", meter)
    with _own_errors_unwrapped(), failures(access.url):
        try:
            incoming.unpack()
        except OSError as error:
            raise _OwnError from error


def list_refs_there(access: Access) -> dict[str, Oid]:
    def ask(client: GitClient, path: bytes) -> dict[str, Oid]:
        found = client.get_refs(path, ref_prefix=_PREFIXES).refs
        return _shared_refs(access, {ref: oid for ref, oid in found.items() if oid is not None})

    return _connect_and(ask, access, "pull")


def send_pack(
    access: Access, objects: ObjectStore, pack: PackParcel, *, atomic: bool = False
) -> PushReport:
    """Send the parcel that *pack* makes of the refs there; refs that changed since are left."""
    output: list[bytes] = []
    parcel = Parcel({}, [])

    def update(refs: dict[Ref, ObjectID]) -> dict[Ref, ObjectID]:
        nonlocal parcel
        parcel = _own(pack)(_shared_refs(access, refs))
        return {
            Ref(name.encode()): ZERO_SHA if oid is None else ObjectID(oid.encode())
            for name, oid in parcel.changes.items()
        }

    def generate(
        _have: object, _want: object, *, ofs_delta: bool = True, **_options: object
    ) -> tuple[int, Iterator[object]]:
        # What lies in memory alone is dulwich's own.
        container: Any = getattr(objects, "by_dulwich", objects)
        todo = [(oid, None) for oid in parcel.objects]
        return len(todo), generate_unpacked_objects(container, todo, ofs_delta=ofs_delta)

    def send(client: GitClient, path: bytes) -> dict[str, str | None]:
        try:
            result = client.send_pack(
                path,
                update,
                generate,  # type: ignore[arg-type]  # dulwich wants its own names of arguments
                output.append,
                atomic=atomic,
            )
        except SendPackError as error:
            # The pack was refused as a whole: no ref was changed.
            reason = _decode_lines([word for word in error.args if word])
            return dict.fromkeys(parcel.changes, reason)
        statuses = result.ref_status or {}
        return {name.decode(errors="replace"): status for name, status in statuses.items()}

    with suppress(AtomicUnsupported):
        return PushReport(_connect_and(send, access, "push"), _decode_lines(output))
    return PushReport({}, "", is_atomic=False)


class _Haves:
    """The commits that a fetch offers as known; what dulwich calls a graph walker."""

    shallow: frozenset[ObjectID] = frozenset()

    def __init__(self) -> None:
        self._waiting: list[ObjectID] = []

    def offer(self, oids: list[Oid]) -> None:
        self._waiting = [ObjectID(oid.encode()) for oid in reversed(oids[:_MOST_HAVES])]

    def __next__(self) -> ObjectID | None:
        return self._waiting.pop() if self._waiting else None

    next = __next__

    def ack(self, sha: ObjectID) -> None:
        """Ignore that the remote has the commit *sha*."""

    def nak(self) -> None:
        """Ignore that the remote has no common commit."""


def _shared_refs(access: Access, refs: Mapping[Ref, ObjectID]) -> dict[str, Oid]:
    """Return the refs below the shared folders, as text; a server may send any bytes."""
    # To a push an empty repository shows an id of zeros, to a fetch nothing.
    if any(len(value) == _SHA256 for value in refs.values()):
        raise RemoteFailed(
            access.url,
            "it has SHA-256 object ids, which uwf cannot read yet",
            hint="`uwf init --shared PATH` makes a repository that uwf can read",
        )
    found: dict[str, Oid] = {}
    for name, value in refs.items():
        oid = value.decode(errors="replace")
        if name.startswith(tuple(_PREFIXES)) and is_oid(oid):
            found[name.decode(errors="backslashreplace")] = Oid(oid)
    return found


class _OwnError(Exception):
    """Our own code failed inside a callback of dulwich; the cause is raised unchanged."""


def _own(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap *function* so that its errors are not mistaken for errors of the remote."""

    def call(*args: P.args, **options: P.kwargs) -> T:
        try:
            return function(*args, **options)
        except Exception as error:
            raise _OwnError from error

    return call


@contextmanager
def _own_errors_unwrapped() -> Iterator[None]:
    try:
        yield
    except _OwnError as error:
        raise error.__cause__ or error from None


def _connect_and(
    action: Callable[[GitClient, bytes], T],
    access: Access,
    operation: str,
    meter: Meter | None = None,
) -> T:
    """Run *action* on a connection; once more with a credential if HTTP requires one."""
    counted = meter or open_meter(access.config)

    def run(credential: Credential | None = None) -> T:
        debug("RAJMAANE", "remote asked", operation=operation, url=access.url.shown)
        client, path = _open_client(access, operation, credential)
        with ExitStack() as stack:
            stack.callback(client.close)
            if isinstance(client, TraditionalGitClient):
                _watch_connections(stack, client, counted)
            elif isinstance(client, Urllib3HttpGitClient):
                _watch_responses(stack, client, counted, access.url)
            return action(client, path)

    with _own_errors_unwrapped(), failures(access.url), SOCKETS.at_most(access.silence_s):
        try:
            return run()
        except HTTPUnauthorized as error:
            credential = find_credential(access.url, access.git, access.environ)
            if credential is None:
                raise unauthorized(access.url, told=False) from error
        try:
            done = run(credential)
        except HTTPUnauthorized as error:
            report_credential("reject", credential, access.git, access.environ)
            raise unauthorized(access.url, told=True) from error
        report_credential("approve", credential, access.git, access.environ)
        return done


def _watch_connections(stack: ExitStack, client: TraditionalGitClient, meter: Meter) -> None:
    """Count what *client* reads, and close what it opens, which dulwich 1.2 may leave open."""
    connect = client._connect  # noqa: SLF001 - what its subclasses are there to override

    def connect_and_remember(
        cmd: bytes, path: str | bytes, protocol_version: int | None = None
    ) -> tuple[Protocol, Callable[[], bool], IO[bytes] | None]:
        protocol, can_read, errors = connect(cmd, path, protocol_version)
        stack.callback(protocol.close)
        protocol.read = meter.counted(protocol.read)
        return protocol, can_read, cast("IO[bytes] | None", errors and ErrorOutput(errors))

    client._connect = connect_and_remember  # type: ignore[method-assign]  # noqa: SLF001 (as above)


def _watch_responses(
    stack: ExitStack, client: Urllib3HttpGitClient, meter: Meter, remote: RemoteUrl
) -> None:
    """Count what *client* reads, and close the responses: dulwich leaves errors open."""
    pool = client.pool_manager
    request = partial(request_safely, pool.request, remote=remote, private=pool.headers)
    stack.callback(pool.clear)

    def request_and_remember(method: str, url: str, **options: Any) -> Any:
        response = request(method, url, **options)
        stack.callback(response.close)
        kind = response.headers.get("Content-Type", "")
        if response.status == HTTPStatus.OK and not kind.startswith("application/x-git-"):
            # dulwich would hold all objects of such a server in memory, of any size.
            raise RemoteFailed(
                remote,
                "it serves files, not git's protocol",
                hint="ask its owner for `git http-backend`, or for another URL",
            )
        response.read = meter.counted(response.read)
        return response

    pool.request = request_and_remember  # type: ignore[method-assign]  # of this one pool


def _open_client(
    access: Access, operation: str, credential: Credential | None
) -> tuple[GitClient, bytes]:
    if access.url.kind == "path":
        # Of bytes dulwich takes only UTF-8 here, and text as it is.
        path = cast("bytes", access.url.text)
        if access.git is None:
            return LocalGitClient(), path
        local = SubprocessGitClient()
        # dulwich passes on the environment of this process.
        local.git_command = ["sh", "-c", f'{UNSET_LOCAL_VARIABLES}; exec "$@"', "sh", access.git]
        return local, path
    # Of a URL that it cannot parse, the other one makes a host and a path.
    is_url = "://" in access.url.text
    open_client = get_transport_and_path_from_url if is_url else get_transport_and_path
    client, there = open_client(
        access.url.text,
        config=_dulwich_config(access),
        operation=operation,
        username=credential.username if credential else None,
        password=credential.password if credential else None,
        ssh_command=_ssh_command(access) if access.url.kind == "ssh" else None,
    )
    if isinstance(client, SSHGitClient):
        client.ssh_vendor = _Ssh(access.silence_s)
        # dulwich decodes neither the path nor the name of such a URL.
        if is_url and client.username:
            client.username = unquote(client.username)
    return client, (unquote(there) if is_url and access.url.kind != "http" else there).encode()


def _dulwich_config(access: Access) -> ConfigDict:
    """Return the git settings as dulwich takes them (it reads `http.*`, `core.gitProxy`)."""
    made = ConfigDict()
    for setting, values in access.config.values.items():
        section, _dot, name = setting.rpartition(".")
        base, dot, subsection = section.partition(".")
        # URLs are rewritten already.
        if base and base != "url":
            place = (base.encode(), _raw(subsection)) if dot else (base.encode(),)
            for value in values:
                made.add(place, name.encode(), _raw(value))
    # git's variables win over settings for any URL.
    here = (b"http", _raw(access.url.shown))
    if authorities := access.environ.get("GIT_SSL_CAINFO"):
        made.add(here, b"sslCAInfo", _raw(authorities))
    if "GIT_SSL_NO_VERIFY" in access.environ:
        made.add(here, b"sslVerify", b"false")
    return made


def _raw(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _ssh_command(access: Access) -> str:
    """Return the ssh command as git finds it; git runs it in a shell, dulwich does not."""
    command = (
        access.environ.get("GIT_SSH_COMMAND")
        or access.config.get(_SSH_COMMAND)
        or shlex.quote(access.environ.get("GIT_SSH") or "ssh")
    )
    # Without a shell between, so that `_Ssh` ends the program itself.
    ends = "exec " if _ONE_PROGRAM.fullmatch(command) else ""
    return shlex.join(["sh", "-c", f'{UNSET_LOCAL_VARIABLES}; {ends}{command} "$@"', "ssh"])


_ONE_PROGRAM = re.compile(r"(?!\s*(\S*=|(exec|command|builtin|eval)\s))[^;&|()<>`\n]+")


class _Ssh(SubprocessSSHVendor):
    """An ssh that is ended when it is silent for too long; dulwich would wait for ever."""

    def __init__(self, silence_s: float) -> None:
        self._silence_s = silence_s

    def run_command(self, *words: Any, **options: Any) -> SubprocessWrapper:
        ssh = super().run_command(*words, **options)

        def wait_for(file: FileIO, event: int) -> None:
            poll = select.poll()
            poll.register(file, event)
            if not poll.poll(self._silence_s * 1000):
                ssh.proc.kill()
                raise TimeoutError("timed out")  # as a socket would

        class Output(FileIO):
            def readinto(self, buffer: Any) -> int | None:
                wait_for(self, select.POLLIN)
                return super().readinto(buffer)

        written: Any = ssh.proc.stdin

        def write(content: bytes) -> int:
            for at in range(0, len(content), select.PIPE_BUF):
                wait_for(written, select.POLLOUT)
                written.write(content[at : at + select.PIPE_BUF])
            return len(content)

        # Else it would close the pipe in its end.
        output = cast("Any", ssh.read).__self__.detach()
        ssh.read = BufferedReader(Output(output.fileno(), closefd=False)).read
        ssh.write = write  # type: ignore[assignment]  # of one overload
        return ssh


class _SocketTimeout:
    """The default timeout of sockets: dulwich has no setting for its own."""

    def __init__(self) -> None:
        self._lock, self._asked = threading.Lock(), list[float]()
        self._before: float | None = None

    @contextmanager
    def at_most(self, silence_s: float) -> Iterator[None]:
        """Set the timeout to the shortest that threads of Python ask for, and in the end back."""
        with self._lock:
            if not self._asked:
                self._before = socket.getdefaulttimeout()
            self._asked.append(silence_s)
            socket.setdefaulttimeout(min(self._asked))
        try:
            yield
        finally:
            with self._lock:
                self._asked.remove(silence_s)
                socket.setdefaulttimeout(min(self._asked, default=self._before))


SOCKETS = _SocketTimeout()


def _decode_lines(raw: list[bytes]) -> str:
    lines = b"".join(raw).decode(errors="replace").replace("\r", "\n").split("\n")
    return "\n".join(line.strip() for line in lines if line.strip())


# Errors of a connection: whatever dulwich and the system raise becomes one `RemoteFailed`.
#
# The message is one line without a password.

_LONGEST = 300
_TOO_LATE = "it did not answer in time"


# Source: git-config(1), safe.directory; what git's setup.c says.
_OWNED_BY_ANOTHER = "detected dubious ownership in repository"

_SYSTEM_SAID = re.compile(r"""\[Errno -?\d+\] ([^'")]+)|(certificate verify failed[^'"(]*)""")

# What dulwich raises when a server does not keep to the protocol.
_BROKEN = (
    *DAMAGE,
    AttributeError,
    InvalidWants,
    KeyError,
    NotImplementedError,
    RecursionError,
    UnresolvedDeltas,
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
        if "does not support atomic" in str(error):
            raise AtomicUnsupported(url, str(error)) from error
        # dulwich turns every error of a socket into one of these.
        in_time = "timed out" not in str(error)
        problem = _cause(str(error)) or "it broke off"
        hint = "it does not let you push, or read: ask its owner" if "resp 403" in problem else None
        raise RemoteFailed(url, problem if in_time else _TOO_LATE, hint=hint) from error
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
        hint="store them in your own credential helper (`git config --global credential.helper`, "
        "then `git credential approve`): a store's own and ~/.netrc do not count; without a "
        "helper uwf prompts on a terminal, unless GIT_TERMINAL_PROMPT=0",
    )


def _last_words(error: HangupException) -> str:
    lines = [line.decode(errors="replace") for line in error.stderr_lines or ()]
    said = [line.strip() for line in lines if line.strip()]
    wrong = [line for line in said if line.startswith(("fatal:", "error:", "ssh:"))]
    first = next(iter(wrong or said), "it closed the connection without a message")
    return first.removeprefix("fatal: ").removeprefix("error: ")


def _ownership_hint(url: RemoteUrl, words: str) -> str | None:
    """Return what to type if git asks whether the user trusts the owner of a folder."""
    if url.kind not in {"path", "ssh"} or not words.startswith(_OWNED_BY_ANOTHER):
        return None
    where, ssh, path = "it", "", quote_path(url.text)
    if url.kind == "ssh":
        # Of which folder a server may say so is not repeated as a command.
        where, ssh, path = "on that server it", "ssh HOST ", "PATH"
    return (
        f"{where} is another user's, whose hooks would run as you; if you trust them: "
        f"`{ssh}git config --global --add safe.directory {path}`"
    )


def _cause(problem: str) -> str:
    """Return the system's error text, without the class names that libraries put around it."""
    found = _SYSTEM_SAID.search(problem)
    return next(filter(None, found.groups())).strip() if found else problem


def _name(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
