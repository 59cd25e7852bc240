"""Commits: write and read git's commit objects, and find a file in a commit's tree.

A commit is never dated before its parents. Dates are UTC, so the same thread has the same object
ids on every machine.
"""

import json
import re
import stat
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from dulwich.objects import Commit, ObjectID, ShaFile, Tree

from uwf_git.errors import GIVEN_BACK, Refused, StoreDamaged
from uwf_git.model.event_folds import one_line, printable
from uwf_git.model.names import Oid
from uwf_git.model.text import quote_path
from uwf_git.model.thread import FORMAT
from uwf_git.store.objects.objects import ObjectStore, damaged_object, get_blob, get_tree

# JSON files of a store: written for people (UTF-8, two spaces) up to 32 MiB, read strictly.

DEFAULT_BLOB_BYTES = 32 * 1024 * 1024
"""The largest blob that a shared store takes, unless it is told otherwise."""

_INDENTED = json.JSONEncoder(ensure_ascii=False, indent=2, allow_nan=False)
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def encode_json(document: Any) -> bytes:
    """Return *document* as the bytes of a JSON blob: UTF-8, indented by two, a final newline.

    A document that would be larger than the default limit of a blob is written without blanks: a
    number in 500 lists takes 1,000 of them, so that 2 MB could become 1 GB.
    """
    parts, left = [], DEFAULT_BLOB_BYTES - 1
    for part in _INDENTED.iterencode(document):
        parts.append(part)
        left -= len(part) if part.isascii() else len(part.encode())
        if left < 0:
            return encode_compact(document)
    return "".join(parts).encode() + b"\n"


def encode_compact(document: Any) -> bytes:
    return _COMPACT.encode(document).encode() + b"\n"


def decode_json(content: bytes) -> Any:
    try:
        return _DECODER.decode(content.decode())
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(key for key, _value in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"the key {twice[:60]!r} is there twice")
    return fields


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)


# Commit messages: subject, indented body and trailers, written and read back.
#
# No text of an agent or a person can be read as a trailer, by git's parser or by ours: without
# these rules four kinds of forgery worked, with them none of 4,000 fuzzed messages (FACTS 3).
# Never dulwich.trailers: it disagrees with git. Format: FORMAT.md, "Messages".

_HINT = (
    "see it with `git log -1 COMMIT`; if somebody made it by hand, `git for-each-ref --points-at "
    "COMMIT` in the store names its REF, and `git update-ref REF COMMIT~1 COMMIT` takes that back "
    "to the commit before; `uwf fetch` then brings what another copy has"
)
OLD = "nothing is lost, and all else in the store goes on"
NEWER = "a newer uwf wrote it: upgrade this one"
LONGEST_SUBJECT = 200


_TRAILER = re.compile(r"(Uwf-[A-Z][A-Za-z-]*): ([\x21-\x7e]+)")
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_SAFE = "/:@!$&'()*+,;=[]{}|^~<>?#\"\\`"
"""What is not percent-encoded in a trailer's value, besides letters, digits, _ . and -."""


class BadMessage(StoreDamaged):
    code = "bad-message"

    def __init__(
        self, problem: str, *, hint: str = _HINT, commit: str | None = None, **facts: str
    ) -> None:
        self.problem = problem
        super().__init__(
            f"the message of {f'commit {commit}' if commit else 'a commit'} {problem}",
            hint=hint,
            **{**facts, "commit": commit},
        )

    def of_commit(self, commit: str, ref: str = "", *, path: str = "") -> "BadMessage":
        """Return the error of *commit*, where *ref* is; *path* is that of the store, if known."""
        hint = (self.hint or _HINT).replace("COMMIT", commit)
        # What was put below refs/cas/ may be nowhere else.
        if hint == OLD and ref and not ref.startswith("refs/cas/"):
            # With the commit: elsewhere the ref may be sound.
            there = ", typed in the store that has it,"
            git, place = (f"git -C {quote_path(path)}", "") if path else ("git", there)
            hint += f"; `{git} update-ref -d {ref} {commit}`{place} removes it if nobody needs it"
        return BadMessage(self.problem, hint=hint, **{**self.facts, "commit": commit})


class OldFormat(BadMessage):
    """The commit has a format that was never released, which this uwf does not read."""

    def __init__(self, version: str, thread: str | None) -> None:
        super().__init__(
            f"has format {version}, and this uwf reads format {FORMAT} alone: commit "
            "90d8292 of this project reads format 1",
            hint=OLD,
            format=version,
            **({"thread": thread} if thread else {}),
        )


def build_message(
    who: str, said: str, *, body: str = "", trailers: Sequence[tuple[str, str]]
) -> bytes:
    """Return the message of a commit: ``<who>: <said>``, the *body* indented, the *trailers*.

    All texts may hold any characters. An empty *who* becomes ``uwf``: git finds no trailers under
    an empty subject.
    """
    lines = [f"{one_line(who) or 'uwf'}: {one_line(said)}"[:LONGEST_SUBJECT].rstrip(), ""]
    text = build_body(body)
    if text:
        lines += [text, ""]
    lines += [f"{name}: {quote(value, safe=_SAFE, errors='replace')}" for name, value in trailers]
    return ("\n".join(lines) + "\n").encode(errors="replace")


def build_body(text: str) -> str:
    """Return *text* as a body: every line indented, since git finds trailers at column 0."""
    lines = [printable(line).rstrip() for line in _LINE_ENDS.split(text)]
    return "\n".join("    " + line if line else "" for line in lines).strip("\n")


def parse_trailers(message: bytes) -> dict[str, str]:
    """Read the trailers of a commit's message: its last paragraph, strictly."""
    _head, blank, last = message.decode(errors="replace").rpartition("\n\n")
    if not blank or not last.endswith("\n"):
        raise BadMessage("has no trailers")
    trailers: dict[str, str] = {}
    for line in last[:-1].split("\n"):
        match = _TRAILER.fullmatch(line)
        if match is None:
            raise BadMessage(f"has a line among its trailers that is no trailer: {line[:60]!r}")
        if match[1] in trailers:
            raise BadMessage(f"says {match[1]} twice")
        value = match[2]
        trailers[match[1]] = unquote(value) if "%" in value else value
    _check_format(trailers.get("Uwf-Format"), trailers.get("Uwf-Thread"))
    return trailers


def _check_format(version: str | None, thread: str | None) -> None:
    # At most nine digits: int() of 5,000 digits raises.
    if version is None or re.fullmatch("[0-9]{1,9}", version) is None:
        raise BadMessage(f"has no number in Uwf-Format: {str(version or '')[:40]!r}")
    if int(version) > FORMAT:
        raise BadMessage(
            f"has format {version}, newer than the {FORMAT} that this uwf reads",
            hint=NEWER,
            format=version,
        )
    if int(version) < FORMAT:
        raise OldFormat(version, thread)


def subject_of(message: bytes) -> str:
    return message.partition(b"\n")[0].decode(errors="replace")


def body_of(message: bytes) -> str:
    """Return the body of a commit's message without its indentation; "" if it has none."""
    return "\n".join(line.removeprefix("    ") for line in raw_body_of(message).split("\n"))


def raw_body_of(message: bytes) -> str:
    return "\n\n".join(message.decode(errors="replace").split("\n\n")[1:-1])


# The headers in git's order (fsck_commit in git's fsck.c), then a blank line. A walk along a thread
# parses each of its commits; dulwich's parser takes six times as long.
_HEADERS = re.compile(
    rb"tree ([0-9a-f]{40})\n"
    rb"((?:parent [0-9a-f]{40}\n)*)"
    rb"author ([^\n]*>) [0-9]{1,19} [+-][0-9]{4}\n"
    rb"committer [^\n]*> ([0-9]{1,19}) [+-][0-9]{4}\n"
    rb"(?:[^ \n]* [^\n]*\n)*"
    rb"\n"
)


# git's commit-graph, which `git gc` writes, has 34 bits for a date (the year 2514): for a later one
# `git fsck` reports a mismatch ever after.
END_OF_TIME_S = 1 << 34


def check_clock(now_ms: int) -> None:
    """Check before anything is done that a commit could have the date *now_ms*."""
    if now_ms // 1000 >= END_OF_TIME_S:
        raise Refused(
            f"the clock of this machine is {now_ms // 1000} seconds after 1970, which is after the "
            "year 2514: git cannot hold the date",
            code="clock-too-late",
            hint="set the clock (`date` shows it), and type the command again: nothing was changed",
            now=now_ms,
        )


def damaged_commit(oid: Oid, problem: str) -> StoreDamaged:
    return StoreDamaged(
        f"commit {oid} {problem}", code="damaged-commit", hint=GIVEN_BACK, commit=oid
    )


class Signing(NamedTuple):
    """Author, committer, time and signature of a commit."""

    author: bytes
    """``name <email>``, cleaned (store/git/program.py)."""

    committer: bytes
    now_ms: int

    sign: Callable[[bytes], bytes] | None = None
    """Signs a commit's bytes (store/signatures.py); None leaves it unsigned."""


class CommitView(NamedTuple):
    oid: Oid
    parents: tuple[Oid, ...]
    tree: ObjectID
    message: bytes
    author: bytes
    time_s: int
    """The date of the committer, in seconds since 1970."""


class CommitDraft(NamedTuple):
    tree: Tree
    parents: tuple[CommitView, ...]
    message: bytes
    objects: Sequence[ShaFile]
    """The objects of the tree that may not be stored yet."""


def read_commit(objects: ObjectStore, oid: Oid) -> CommitView:
    found = _HEADERS.match(read_raw_commit(objects, oid))
    if found is None:
        raise damaged_commit(oid, "is no commit that git would write")
    return build_view(oid, found)


def build_view(oid: Oid, headers: re.Match[bytes]) -> CommitView:
    """Return the commit *oid* whose *headers* (tree, parents, author, time) were matched."""
    return CommitView(
        oid=oid,
        parents=tuple(Oid(parent) for parent in headers[2].decode().split()[1::2]),
        tree=ObjectID(headers[1]),
        message=headers.string[headers.end() :],
        author=headers[3],
        time_s=int(headers[4]),
    )


def read_raw_commit(objects: ObjectStore, oid: Oid) -> bytes:
    try:
        kind, content = objects.get_raw(ObjectID(oid.encode()))
    except KeyError:
        raise damaged_commit(oid, "is missing") from None
    if kind != Commit.type_num:
        raise damaged_commit(oid, "is not a commit")
    return content


def find_in_tree(tree: Tree, name: str) -> ObjectID | None:
    key = name.encode()
    return tree[key][1] if key in tree else None


def find_entry(objects: ObjectStore, commit: CommitView, name: str) -> ObjectID | None:
    return find_in_tree(get_tree(objects, commit.tree), name)


def get_entry(objects: ObjectStore, commit: CommitView, name: str) -> ObjectID:
    oid = find_entry(objects, commit, name)
    if oid is None:
        raise damaged_commit(commit.oid, f"has no {name}")
    return oid


def read_commit_file(objects: ObjectStore, commit: CommitView, name: str) -> bytes:
    return get_blob(objects, get_entry(objects, commit, name))


def write_commit(objects: ObjectStore, draft: CommitDraft, signing: Signing) -> Oid:
    """Write a commit after the objects that it needs; until a ref points there git may prune it."""
    commit = build_commit(draft, signing)
    # Two nodes in one folder list that folder twice; write each object once.
    needed = {obj.id: obj for obj in (*draft.objects, draft.tree, commit)}
    objects.add_objects([(obj, None) for obj in needed.values()])
    return Oid(commit.id.decode())


def build_commit(draft: CommitDraft, signing: Signing) -> Commit:
    """Build the commit of *draft*; nothing is written."""
    check_clock(signing.now_ms)
    commit = Commit()
    commit.tree = draft.tree.id
    commit.parents = [ObjectID(parent.oid.encode()) for parent in draft.parents]
    commit.author = signing.author
    commit.committer = signing.committer
    time_s = max([0, signing.now_ms // 1000, *(parent.time_s for parent in draft.parents)])
    commit.author_time = commit.commit_time = time_s
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = draft.message
    if signing.sign is not None:
        commit.gpgsig = signing.sign(commit.as_raw_string()).rstrip(b"\n")
    return commit


# Ancestry along first parents, the only way in which a ref of a thread or workflow moves.

MOST_COMMITS = 200_000
"""How far back an ancestor is searched; no thread is as long, but a forged chain may be."""


def descends(objects: ObjectStore, tip: Oid, ancestor: Oid, *, since_s: int = 0) -> bool:
    """Check whether *tip* is *ancestor*, or has it among its first parents.

    The walk stops at the first commit that is older than *since_s*, in seconds since 1970.
    """
    oid: Oid | None = tip
    for _commit in range(MOST_COMMITS):
        if oid is None or oid == ancestor:
            return oid is not None
        commit = read_commit(objects, oid)
        if commit.time_s < since_s:
            return False
        oid = next(iter(commit.parents), None)
    return False


def is_descendant(objects: ObjectStore, tip: Oid, ancestor: Oid) -> bool:
    """Check the same for commits that may be missing here; missing or unreadable means False.

    A commit is never dated before its parents, so the walk ends at the date of *ancestor*: the
    cost depends on how far two sides have diverged, not on the length of the thread.
    """
    if tip == ancestor:
        return True
    with suppress(StoreDamaged):
        return descends(objects, tip, ancestor, since_s=read_commit(objects, ancestor).time_s)
    return False


# Object walks: which objects a commit needs beyond those behind commits that are already there.
#
# A push asks what to send, a fetch whether everything came. Of each commit only the difference to
# its first parent's tree is read, so the cost depends on what is new.

Needed = ObjectID
"""The id of an object that a commit needs, for callers that do not import dulwich."""

_Objects = Container[ObjectID]


def list_new_objects(
    objects: ObjectStore, tip: Oid, had: Container[Oid], known: Container[ObjectID] = ()
) -> list[ObjectID]:
    """List the objects that *tip* needs, without those behind the commits *had* and the *known*."""
    needed: dict[ObjectID, None] = {}
    for commit in _walk_commits(objects, tip, had, known):
        needed[ObjectID(commit.oid.encode())] = None
        before = None
        # The walk raises when it comes to a missing parent, unless the commit is had.
        with suppress(StoreDamaged):
            # Its objects were had already or listed before.
            before = read_commit(objects, commit.parents[0]).tree if commit.parents else None
        for oid in _walk_changes(objects, (commit.tree, before), needed, known):
            needed[oid] = None
    return list(needed)


def _walk_commits(
    objects: ObjectStore, tip: Oid, had: Container[Oid], known: _Objects
) -> Iterator[CommitView]:
    """Yield the commits, each after all of its parents.

    Only the difference of a tree to the parent's tree is listed. In the order newest first, a tree
    that comes back (A, B, A again) would be listed without what A and B share, and the older A
    would then be skipped as already listed.
    """
    waiting: list[tuple[Oid, CommitView | None]] = [(tip, None)]
    seen: set[Oid] = set()
    while waiting:
        oid, commit = waiting.pop()
        if commit is not None:
            yield commit
        elif oid not in seen and oid not in had and ObjectID(oid.encode()) not in known:
            seen.add(oid)
            commit = read_commit(objects, oid)
            waiting.append((oid, commit))
            waiting += [(parent, None) for parent in commit.parents]


def _walk_changes(
    objects: ObjectStore, pair: tuple[ObjectID, ObjectID | None], needed: _Objects, known: _Objects
) -> Iterator[ObjectID]:
    """Yield a tree and its entries, except entries that the tree before has at the same path."""
    waiting = [pair]
    queued = {pair[0]}
    while waiting:
        oid, before = waiting.pop()
        if oid == before or oid in needed or oid in known:
            continue
        tree = get_tree(objects, oid)
        yield oid
        old = _entries(objects, before)
        for entry in tree.items():
            if entry.sha == old.get(entry.path) or entry.sha in needed or entry.sha in known:
                continue
            if stat.S_ISDIR(entry.mode):
                # Once, and only what is here: a tree can name a hundred thousand.
                if entry.sha not in queued:
                    queued.add(_check_is_here(objects, entry.sha))
                    waiting.append((entry.sha, old.get(entry.path)))
            elif stat.S_IFMT(entry.mode) != _SUBMODULE:
                yield _check_is_here(objects, entry.sha)


_SUBMODULE = 0o160000


def _entries(objects: ObjectStore, tree: ObjectID | None) -> dict[bytes, ObjectID]:
    if tree is None:
        return {}
    with suppress(StoreDamaged):
        return {entry.path: entry.sha for entry in get_tree(objects, tree).items()}
    return {}


def _check_is_here(objects: ObjectStore, oid: ObjectID) -> ObjectID:
    if oid not in objects:
        raise damaged_object(oid, "is missing")
    return oid
