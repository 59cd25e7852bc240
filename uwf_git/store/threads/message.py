"""Thread messages and now.json: a transition record as its commit has it."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from uwf_git.model.event_folds import Words
from uwf_git.model.names import NodeHash, ThreadId, is_node_hash, is_thread_id
from uwf_git.model.node import NotCanonical, canonical
from uwf_git.model.thread import (
    EVENTS,
    FORMAT,
    STATUSES,
    Event,
    NotAPresent,
    Status,
    ThreadState,
    TransitionRecord,
    parse_present,
)
from uwf_git.model.workflow import freeze
from uwf_git.store.objects.commit import BadMessage, build_message, decode_json, parse_trailers
from uwf_git.store.oid import is_oid

# Thread messages: a transition record as the trailers of a commit.
#
# Format: FORMAT.md, "The trailers of a thread commit".

_FORKED_FROM = "Uwf-Forked-From"
_PARENT = "Uwf-Parent-Thread"
_RETRIES = "Uwf-Retries-Left"
_NAMES = (
    "Uwf-Thread Uwf-Event Uwf-Status Uwf-Node Uwf-Depth Uwf-Workflow Uwf-Workflow-Name Uwf-Role "
    "Uwf-Agent Uwf-At Uwf-Attempt Uwf-Turn Uwf-Files Uwf-Cause Uwf-Format"
)
_LISTED = frozenset({*_NAMES.split(), _PARENT, _FORKED_FROM, _RETRIES})
_FLAGS = {True: "yes", False: "no"}
_FILES = re.compile(r"[0-9a-f]{40}\.\.[0-9a-f]{40}")
_LONGEST_NUMBER = 15


def build_thread_message(record: TransitionRecord, words: Words) -> bytes:
    """Write the message of a thread commit; the subject is ``<role or event>: <said>``."""
    who = record.role or record.event
    return build_message(who, words.said, body=words.body, trailers=_list_trailers(record))


def parse_thread_message(message: bytes) -> TransitionRecord:
    trailers = parse_trailers(message)
    unlisted = trailers.keys() - _LISTED
    if unlisted:
        raise BadMessage(f"has a trailer that format {FORMAT} does not list: {min(unlisted)}")
    return TransitionRecord(
        thread=_thread(_required(trailers, "Uwf-Thread")),
        event=_event(_required(trailers, "Uwf-Event")),
        status=_status(_required(trailers, "Uwf-Status")),
        node=_node(trailers, "Uwf-Node"),
        depth=_natural(trailers, "Uwf-Depth"),
        workflow=_node(trailers, "Uwf-Workflow"),
        workflow_name=_required(trailers, "Uwf-Workflow-Name"),
        role=trailers.get("Uwf-Role"),
        agent=trailers.get("Uwf-Agent"),
        attempt=_natural(trailers, "Uwf-Attempt") if "Uwf-Attempt" in trailers else None,
        forked_from=_thread(trailers[_FORKED_FROM]) if _FORKED_FROM in trailers else None,
        cause=_node(trailers, "Uwf-Cause") if "Uwf-Cause" in trailers else None,
        at=trailers.get("Uwf-At"),
        parent_thread=_thread(trailers[_PARENT]) if _PARENT in trailers else None,
        retries_left=_flag(trailers[_RETRIES]) if _RETRIES in trailers else None,
        turn=_commit(trailers["Uwf-Turn"]) if "Uwf-Turn" in trailers else None,
        files=_files(trailers["Uwf-Files"]) if "Uwf-Files" in trailers else None,
    )


def _list_trailers(record: TransitionRecord) -> list[tuple[str, str]]:
    retries = None if record.retries_left is None else _FLAGS[record.retries_left]
    pairs: list[tuple[str, str | int | None]] = [
        ("Uwf-Thread", record.thread),
        (_PARENT, record.parent_thread),
        ("Uwf-Event", record.event),
        ("Uwf-Status", record.status),
        ("Uwf-Node", record.node),
        ("Uwf-Depth", record.depth),
        ("Uwf-Workflow", record.workflow),
        ("Uwf-Workflow-Name", record.workflow_name),
        ("Uwf-Role", record.role),
        ("Uwf-Agent", record.agent),
        ("Uwf-At", record.at),
        ("Uwf-Attempt", record.attempt),
        (_RETRIES, retries),
        ("Uwf-Turn", record.turn),
        ("Uwf-Files", record.files),
        (_FORKED_FROM, record.forked_from),
        ("Uwf-Cause", record.cause),
        ("Uwf-Format", FORMAT),
    ]
    return [(name, str(value)) for name, value in pairs if value not in {None, ""}]


def _required(trailers: dict[str, str], name: str) -> str:
    try:
        return trailers[name]
    except KeyError:
        raise BadMessage(f"has no {name}") from None


def _thread(text: str) -> ThreadId:
    return ThreadId(_checked(text, "names no thread", fits=is_thread_id(text)))


def _event(text: str) -> Event:
    _checked(text, "has an unknown event", fits=text in EVENTS)
    return text  # type: ignore[return-value]  # EVENTS are the Literal's own words


def _status(text: str) -> Status:
    _checked(text, "has an unknown status", fits=text in STATUSES)
    return text  # type: ignore[return-value]  # STATUSES are the Literal's own words


def _node(trailers: dict[str, str], name: str) -> NodeHash:
    text = _required(trailers, name)
    return NodeHash(_checked(text, f"has no node in {name}", fits=is_node_hash(text)))


def _natural(trailers: dict[str, str], name: str) -> int:
    text = _required(trailers, name)
    is_natural = text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER
    return int(_checked(text, f"has no number in {name}", fits=is_natural))


def _flag(text: str) -> bool:
    problem = f"says neither yes nor no in {_RETRIES}"
    return _checked(text, problem, fits=text in _FLAGS.values()) == _FLAGS[True]


def _commit(text: str) -> str:
    return _checked(text, "names no commit in Uwf-Turn", fits=is_oid(text))


def _files(text: str) -> str:
    fits = _FILES.fullmatch(text) is not None
    return _checked(text, "names no two commits in Uwf-Files", fits=fits)


def _checked(text: str, problem: str, *, fits: bool) -> str:
    if not fits:
        raise BadMessage(f"{problem}: {text[:40]!r}")
    return text


# Read now.json: a thread's state as one of its commits has it. Format: FORMAT.md, "now.json".


class NowFile(NamedTuple):
    present: ThreadState
    document: Mapping[str, Any]


# A thread with many branches is read for each step of each of them.
_LONG_BYTES = 8 * 1024
_MOST_KNOWN = 4
_SPLIT = b'"split": {'


def parse_now(content: bytes) -> NowFile:
    if len(content) >= _LONG_BYTES and _SPLIT in content:
        return _parse_long(content)
    return _parse(content, lambda document: document)


@lru_cache(maxsize=_MOST_KNOWN)
def _parse_long(content: bytes) -> NowFile:
    # Shared, so nobody may change it.
    return _parse(content, freeze)


def _parse(content: bytes, share: Callable[[Any], Any]) -> NowFile:
    try:
        document = share(canonical(decode_json(content)))
        return NowFile(parse_present(document), document)
    except NotCanonical as error:
        raise NotAPresent(error.message) from error
    except RecursionError as error:
        raise NotAPresent("nested too deeply") from error
    except ValueError as error:
        raise NotAPresent(str(error)) from error
