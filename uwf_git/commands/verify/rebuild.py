"""Make a commit again from its event, its new nodes and what is free; compare it byte by byte.

Free are the committer, the date, the signature, and what FORMAT.md lists for each event; all else
follows, by the functions that writers use. Format: FORMAT.md, "What is free".
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from uwf_git.commands.verify.finding import Finding, Location
from uwf_git.model.canonical import canonical
from uwf_git.model.event_folds import Standing
from uwf_git.model.event_words import Words
from uwf_git.model.thread import NotAPresent, ThreadState
from uwf_git.store.git.identity import is_clean
from uwf_git.store.objects.json_file import encode_json
from uwf_git.store.objects.message import (
    body_of,
    parse_trailers,
    raw_body_of,
    subject_of,
)
from uwf_git.store.objects.strict_commit import StrictCommit
from uwf_git.store.threads.message import build_thread_message, parse_now

HAND_MADE = (
    "no version of uwf writes such a commit: it was made by hand; another copy of this store "
    "may have the original history: `git fetch`"
)
_MOST_SHOWN = 80
_MOST_TOLD = 10


class Made(NamedTuple):
    standing: Standing
    words: Words
    author: bytes | None
    """``name <email>``; None: the committer's."""

    now: bytes


def make(standing: Standing, words: Words, author: bytes | None = None) -> Made:
    """Return the commit after which the thread is at *standing*."""
    return Made(standing, words, author, encode_json(standing.state.as_document()))


def compare(site: Location, commit: StrictCommit, now: bytes, made: Made) -> Iterator[Finding]:
    told, right = commit.view.message, build_thread_message(made.standing.record, made.words)
    troubles = list(_list_trailers(told, right))
    if made.now != now:
        troubles += _compare_now(now, made.standing.state)
    troubles += _list_words(told, right)
    problem = find_author_problem(commit, made.author)
    if problem is not None:
        troubles.append(problem)
    node = made.standing.record.cause
    troubles = troubles or list(list_wrong(told, right))
    yield from (site.finding(each, hint=HAND_MADE, node=node) for each in troubles)


def list_wrong(message: bytes, expected: bytes) -> Iterator[str]:
    """List how *message* differs from the message that it must be."""
    if message != expected:
        wrong = [*_list_trailers(message, expected), *_list_words(message, expected)]
        yield from wrong or ["its message is not written as uwf writes it"]


def _list_trailers(message: bytes, expected: bytes) -> Iterator[str]:
    told, right = parse_trailers(message), parse_trailers(expected)
    for name in dict.fromkeys([*right, *told]):
        if told.get(name) != right.get(name):
            yield f"{name} is {_value(told.get(name))}, and must be {_value(right.get(name))}"


def _list_words(message: bytes, expected: bytes) -> Iterator[str]:
    if subject_of(message) != subject_of(expected):
        subjects = _shown(subject_of(message)), _shown(subject_of(expected))
        yield f"its subject is {subjects[0]}, and must be {subjects[1]}"
    if raw_body_of(message) != raw_body_of(expected):
        bodies = _shown(body_of(message)), _shown(body_of(expected))
        yield f"its body is {bodies[0]}, and must be {bodies[1]}"


def _value(value: str | None) -> str:
    if value is None:
        return "absent"
    return value if value.isascii() and value.isalnum() else _shown(value)


def _compare_now(content: bytes, expected: ThreadState) -> Iterator[str]:
    try:
        document = parse_now(content).document
    except NotAPresent:
        return  # reported as the file was read
    lies = list(list_differences("", document, canonical(expected.as_document())))
    yield from lies[:_MOST_TOLD]
    if not lies:
        yield "now.json has what the history gives, and is not written as uwf writes it"


def list_differences(path: str, told: Any, right: Any) -> Iterator[str]:
    """List where a document differs from what the history gives, by path; keys in any order."""
    if isinstance(told, Mapping) and isinstance(right, Mapping) and path.count(".") < _MOST_SHOWN:
        for key in dict.fromkeys([*right, *told]):
            inner = f"{path}.{key}" if path else key
            yield from list_differences(inner, told.get(key), right.get(key))
    elif _text(told) != _text(right):
        given = "nothing" if right is None else _json(right)
        yield f"now.json says {path} {_json(told)}, and the history gives {given}"


def _text(value: Any) -> str:
    # As text: to Python, True == 1.
    return json.dumps(value, sort_keys=True, default=dict)


def _json(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False, default=dict)
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"


def find_author_problem(commit: StrictCommit, expected: bytes | None = None) -> str | None:
    """Return what is wrong with the author, or None.

    *expected* is the identity of the role and program that acted; None: the committer acted.
    """
    author, committer = commit.author, commit.committer
    right = committer.identity if expected is None else expected
    if author.identity != right:
        names = [_shown(each.decode(errors="replace")) for each in (author.identity, right)]
        return f"its author is {names[0]}, and must be {names[1]}"
    if author.date != committer.date:
        dates = [each.date.decode(errors="replace") for each in (author, committer)]
        return f"its author's date is {dates[0]}, and its committer's {dates[1]}"
    if not is_clean(committer.identity):
        name = _shown(committer.identity.decode(errors="replace"))
        return f"its committer is {name}, which uwf would have cleaned"
    return None


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…")
