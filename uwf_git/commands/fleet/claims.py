"""Claims: which machine runs a thread of a hub, so that no agent is paid twice.

A claim is the ref `refs/claims/<thread>` at the hub, and leads to a small blob. The claim moves
only from the value that its mover has seen, and each value is new, so a single claimer wins. The
holder of a claim renews it three times in its time to live (TTL). No clocks are compared: a claim
is dead if its watcher saw no other value for the TTL. All claims of a process are renewed by one
push, and one look at the hub's refs serves all its threads. Claims spare money: the threads' own
refs keep steps from being lost or doubled.
"""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.remote.push import open_connection
from uwf_git.debug_log import debug
from uwf_git.errors import Conflict, UwfError
from uwf_git.model.names import Oid, ThreadId, is_thread_id
from uwf_git.store.locks import parse_object
from uwf_git.store.objects.objects import ObjectStore, read_blob
from uwf_git.store.remotes.incoming import (
    FetchRequest,
    Parcel,
    build_parcel,
    hold_blobs,
    name_blob,
    read_fetch_limits,
    receive_objects,
)
from uwf_git.store.remotes.remotes import CLAIMS, Remote, remote_url
from uwf_git.store.remotes.transport import Access, RemoteFailed, fetch_pack, list_refs_there
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ARCHIVE
from uwf_git.surroundings import read_boot_id

TTL_S = 60.0
POLL_S = 2.0
_BEATS = 3
"""How often a claim is renewed in its time to live."""

_LEAST_PATIENCE_S = 1.0
"""How long an answer of the hub is waited for at least, however short the time to live."""

_MOST_REFUSED = 5
"""How often a claim is tried where nobody has one."""


class Claim(NamedTuple):
    value: Oid
    said: dict[str, str]
    """What it tells; empty if that cannot be read."""


def _read_said(objects: ObjectStore, oid: Oid) -> dict[str, str]:
    # Anybody who may push may have written it.
    with suppress(UwfError, KeyError):
        said = parse_object(read_blob(objects, oid))
        return {key: text for key, text in said.items() if isinstance(text, str)}
    return {}


Move = tuple[Collection[Oid | None], bytes | None]
"""A claim's values before, as they are when the hub is asked, and the content after."""


class Hub:
    """A remote whose refs tell who runs what."""

    def __init__(self, store: Store, caller: Caller, remote: Remote) -> None:
        self.store, self.caller, self.remote = store, caller, remote
        self._access = Access(remote_url(store, remote), store.config, caller.environ)
        self._access.check_trusted(store)
        self.said = ""
        """What the hub printed when claims were last moved."""

    def look(self) -> dict[str, Oid]:
        return list_refs_there(self._access)

    def read_claims(self, only: ThreadId | None = None) -> dict[ThreadId, Claim]:
        """Read the claims of threads that go on, or one thread's claim, in one connection."""
        claims: dict[ThreadId, Oid] = {}

        def choose(refs: dict[str, Oid]) -> FetchRequest:
            found = list_claims(refs)
            chosen = found.keys() - list_ended_claims(refs).keys() if only is None else {only}
            claims.update((each, o) for each, o in found.items() if each in chosen)
            return FetchRequest(list(dict.fromkeys(claims.values())), [])

        with receive_objects(self.store, read_fetch_limits(self.store.config)) as incoming:
            fetch_pack(self._access, choose, incoming)
            return {
                each: Claim(oid, _read_said(incoming.objects, oid)) for each, oid in claims.items()
            }

    def swap(self, moves: Mapping[ThreadId, Move]) -> set[ThreadId]:
        """Move claims, each from one of these values to the other; return those that have moved."""

        def pack(refs: dict[str, Oid]) -> Parcel:
            found = {each: refs.get(CLAIMS + each) for each in moves}
            return build_parcel(
                {CLAIMS + each: new for each, (old, new) in moves.items() if found[each] in old}
            )

        blobs = hold_blobs(new for _old, new in moves.values() if new is not None)
        store = self.store._replace(objects=blobs)
        send = open_connection(store, self.caller, remote_url(store, self.remote, for_push=True))
        report = send(pack, atomic=False)
        self.said = report.output
        return {each for each in moves if report.statuses.get(CLAIMS + each, "not sent") is None}


def list_claims(refs: Mapping[str, Oid]) -> dict[ThreadId, Oid]:
    named = {ref.removeprefix(CLAIMS): oid for ref, oid in refs.items() if ref.startswith(CLAIMS)}
    return {ThreadId(name): oid for name, oid in named.items() if is_thread_id(name)}


def list_ended_claims(refs: Mapping[str, Oid]) -> dict[ThreadId, Oid]:
    """List the claims of threads that have ended: their machines died before they let go."""
    return {each: oid for each, oid in list_claims(refs).items() if ARCHIVE + each in refs}


def thread_claimed(thread: ThreadId, claim: Claim) -> Conflict:
    host = claim.said.get("host", "another machine")
    return Conflict(
        f"thread {thread} is run by {host}, which renews its claim",
        code="thread-claimed",
        hint="`uwf ps --remote` shows who runs what",
        thread=thread,
        host=host,
    )


class Watch:
    """Tells which claims are dead, by the time that passes while it sees the same value."""

    def __init__(self, ttl_s: float) -> None:
        self._ttl_s = ttl_s
        self._seen: dict[tuple[ThreadId, Oid], float] = {}

    def find_dead(self, claims: Mapping[ThreadId, Oid]) -> dict[ThreadId, Oid]:
        """Return the present *claims* that have not moved for the time to live."""
        now = time.monotonic()
        self._seen = {each: self._seen.get(each, now) for each in claims.items()}
        return dict(each for each, since in self._seen.items() if now - since >= self._ttl_s)


OnLook = Callable[[Mapping[str, Oid]], None]


class Held:
    """A claim of this process."""

    def __init__(self, thread: ThreadId, ours: set[Oid | None], on_look: OnLook) -> None:
        self.thread, self.on_look = thread, on_look
        self.ours = ours
        """What the hub may have: all values sent, that before, and none.

        An answer may be lost or late, and a hub may be restored from a backup.
        """

        self.is_lost = threading.Event()
        self.role = ""


class Keeper:
    """Keeps the claims of this process at one hub: takes, renews, watches and releases them."""

    def __init__(self, hub: Hub, *, ttl_s: float = TTL_S, poll_s: float = POLL_S) -> None:
        self._hub, self._ttl_s, self._poll_s = hub, ttl_s, poll_s
        # Three answers in a row may be missing.
        self._patience_s = max(ttl_s / (2 * _BEATS), _LEAST_PATIENCE_S)
        self._held: dict[ThreadId, Held] = {}
        self._lock, self._woken = threading.Lock(), threading.Event()
        self._idle = threading.Event()
        """Set when the newest renewal is not under way any more."""

        self._idle.set()
        self._is_running, self._due_s = False, 0.0

    def take(self, thread: ThreadId, *, over: Oid | None = None, on_look: OnLook) -> Held:
        """Claim *thread*, *over* a dead claim, or when one that is there proves dead.

        *on_look* is called with the hub's refs at each look, in another thread of Python: it may
        not take long, since it holds up what is asked next.

        Raises:
            ThreadClaimed: its claim was renewed while this one watched.
            RemoteFailed: the hub cannot be reached, or takes no claims.
        """
        watch = Watch(self._ttl_s)
        first: Oid | None = None
        refused = 0
        while True:
            new = self._build(thread, "")
            if thread in self._hub.swap({thread: ({over}, new)}):
                held = Held(thread, {None, over, name_blob(new)}, on_look)
                with self._lock:
                    self._held[thread] = held
                    if not self._is_running:
                        self._is_running = True
                        threading.Thread(target=self._run, name="uwf claims", daemon=True).start()
                return held
            found = self._hub.read_claims(thread).get(thread)
            over = None
            if found is None:
                # Released meanwhile; or the hub takes none, as a forge to whom may only read.
                refused += 1
                if refused == _MOST_REFUSED:
                    url = remote_url(self._hub.store, self._hub.remote, for_push=True)
                    said = f": {self._hub.said}" if self._hub.said else ""
                    raise RemoteFailed(
                        url,
                        f"it does not take a claim of thread {thread}{said}",
                        hint="if it forbids that, ask its owner to let you push to refs/claims/; "
                        "without claims, two machines may pay for one step",
                    )
                continue
            refused = 0
            is_dead = thread in watch.find_dead({thread: found.value})
            if is_dead or found.said.get("place") == place_of(self._hub.store):
                # Left by a dead process: who claims a thread holds its drive lock in this clone.
                over = found.value
                continue
            first = first or found.value
            if first != found.value:
                raise thread_claimed(thread, found)
            time.sleep(self._poll_s)

    def release(self, held: Held) -> None:
        with self._lock:
            self._held.pop(held.thread, None)
            self._woken.set()
        # A renewal that hangs must not make the claim again, nor one that arrives refuse this.
        held.ours.discard(None)
        self._idle.wait(self._patience_s)
        if not held.is_lost.is_set():
            self._ask(self._hub.swap, {held.thread: (held.ours, None)})

    def _build(self, thread: ThreadId, role: str) -> bytes:
        said = {
            "host": socket.gethostname(),
            "place": place_of(self._hub.store),
            "thread": thread,
            "role": role,
            "beat": os.urandom(8).hex(),
        }
        return json.dumps(said, sort_keys=True).encode()

    def _run(self) -> None:
        self._due_s = time.monotonic() + self._ttl_s / _BEATS
        while True:
            self._woken.wait(self._poll_s)
            with self._lock:
                self._woken.clear()
                held = list(self._held.values())
                if not held:
                    self._is_running = False
                    return
            if time.monotonic() >= self._due_s:
                self._idle = threading.Event()
                if self._ask(self._renew, held, self._idle):
                    self._due_s = time.monotonic() + self._ttl_s / _BEATS
            self._ask(self._look, held)

    def _ask(self, ask: Callable[..., object], *what: Any) -> bool:
        """Ask the hub; return whether it answered in time: a connection may hang for ever."""
        answered = threading.Event()

        def run() -> None:
            with self._surviving():
                ask(*what)
                answered.set()

        asking = threading.Thread(target=run, daemon=True)
        with self._surviving():
            asking.start()
            asking.join(self._patience_s)
        return answered.is_set()

    def _keeps(self, held: Held) -> bool:
        return self._held.get(held.thread) is held and not held.is_lost.is_set()

    @contextmanager
    def _surviving(self) -> Iterator[None]:
        """Go on after any error: without its beat an agent at work would be taken for dead."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 (the hub may be away; and see above)
            debug("8YV4M1KD", "claims not kept", error=str(error))

    def _look(self, held: Iterable[Held]) -> None:
        refs = self._hub.look()
        with self._lock:
            for each in held:
                with self._surviving():
                    self._compare(each, refs)

    def _compare(self, held: Held, refs: Mapping[str, Oid]) -> None:
        """Notice that another process has the claim."""
        if not self._keeps(held):
            return
        value = refs.get(CLAIMS + held.thread)
        if value is None:
            # Renewed before another machine sees that it is free.
            self._due_s = 0.0
        elif value not in held.ours:
            debug("Q5R8W2TN", "claim lost", thread=held.thread)
            held.ours.clear()
            held.is_lost.set()
        held.on_look(refs)

    def _renew(self, held: Iterable[Held], idle: threading.Event) -> None:
        moves: dict[ThreadId, Move] = {}
        try:
            for each in held:
                if self._keeps(each):
                    new = self._build(each.thread, each.role)
                    each.ours.add(name_blob(new))
                    moves[each.thread] = (each.ours, new)
            if moves:
                self._hub.swap(moves)
        finally:
            idle.set()


def place_of(store: Store) -> str:
    """Return what no other machine, and no other clone of this one, has: of whom a claim is."""
    found = os.stat(store.path)
    return f"{socket.gethostname()} {read_boot_id()} {found.st_dev}:{found.st_ino}"
