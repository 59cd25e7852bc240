"""Thread messages and now.json: a transition record as its commit has it."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from uwf_git.model.event_folds import Words
from uwf_git.model.names import is_node_hash, is_oid, is_thread_id
from uwf_git.model.node import NotCanonical, canonical
from uwf_git.model.thread import (
    EVENTS,
    FORMAT,
    STATUSES,
    NotAPresent,
    ThreadState,
    TransitionRecord,
    parse_present,
)
from uwf_git.model.workflow import freeze
from uwf_git.store.objects.commit import BadMessage, build_message, decode_json, parse_trailers

# Thread messages: a transition record as the trailers of a commit.
#
# Format: FORMAT.md, "The trailers of a thread commit".

_FORMAT = "Uwf-Format"
_FILES = re.compile(r"[0-9a-f]{40}\.\.[0-9a-f]{40}")
_LONGEST_NUMBER = 15


class _Trailer(NamedTuple):
    field: str
    """Of a `TransitionRecord`."""

    fits: Callable[[str], object] = bool
    problem: str = ""
    read: Callable[[str], Any] = str


def _is_natural(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER


def _node(field: str, name: str) -> _Trailer:
    return _Trailer(field, is_node_hash, f"has no node in {name}")


def _thread(field: str) -> _Trailer:
    return _Trailer(field, is_thread_id, "names no thread")


_TRAILERS: Mapping[str, _Trailer] = {
    "Uwf-Thread": _thread("thread"),
    "Uwf-Parent-Thread": _thread("parent_thread"),
    "Uwf-Event": _Trailer("event", EVENTS.__contains__, "has an unknown event"),
    "Uwf-Status": _Trailer("status", STATUSES.__contains__, "has an unknown status"),
    "Uwf-Node": _node("node", "Uwf-Node"),
    "Uwf-Depth": _Trailer("depth", _is_natural, "has no number in Uwf-Depth", int),
    "Uwf-Workflow": _node("workflow", "Uwf-Workflow"),
    "Uwf-Workflow-Name": _Trailer("workflow_name"),
    "Uwf-Role": _Trailer("role"),
    "Uwf-Agent": _Trailer("agent"),
    "Uwf-At": _Trailer("at"),
    "Uwf-Attempt": _Trailer("attempt", _is_natural, "has no number in Uwf-Attempt", int),
    "Uwf-Retries-Left": _Trailer(
        "retries_left",
        {"yes", "no"}.__contains__,
        "says neither yes nor no in Uwf-Retries-Left",
        "yes".__eq__,
    ),
    "Uwf-Turn": _Trailer("turn", is_oid, "names no commit in Uwf-Turn"),
    "Uwf-Files": _Trailer("files", _FILES.fullmatch, "names no two commits in Uwf-Files"),
    "Uwf-Forked-From": _thread("forked_from"),
    "Uwf-Cause": _node("cause", "Uwf-Cause"),
}
"""By name, in the order in which they are written; `Uwf-Format` is the last."""

_REQUIRED = [
    name
    for name, trailer in _TRAILERS.items()
    if trailer.field not in TransitionRecord._field_defaults
]


def build_thread_message(record: TransitionRecord, words: Words) -> bytes:
    """Write the message of a thread commit; the subject is ``<role or event>: <said>``."""
    values = ((name, getattr(record, trailer.field)) for name, trailer in _TRAILERS.items())
    trailers = [(name, _spell(value)) for name, value in values if value not in {None, ""}]
    trailers.append((_FORMAT, str(FORMAT)))
    return build_message(
        record.role or record.event, words.said, body=words.body, trailers=trailers
    )


def _spell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def parse_thread_message(message: bytes) -> TransitionRecord:
    trailers = parse_trailers(message)
    del trailers[_FORMAT]  # checked as it was read
    unlisted = trailers.keys() - _TRAILERS.keys()
    if unlisted:
        raise BadMessage(f"has a trailer that format {FORMAT} does not list: {min(unlisted)}")
    for name in _REQUIRED:
        if name not in trailers:
            raise BadMessage(f"has no {name}")
    fields: dict[str, Any] = {}
    for name, text in trailers.items():
        field, fits, problem, read = _TRAILERS[name]
        if not fits(text):
            raise BadMessage(f"{problem}: {text[:40]!r}")
        fields[field] = read(text)
    return TransitionRecord(**fields)


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
