"""A recorded commit of each event: it is made again byte for byte, and no byte can be another.

The commits were written once by real commands (format-2.bundle), and are never made anew: they
are the second description of the format, beside the functions that writers and verify share.
"""

import subprocess
from functools import cache
from pathlib import Path

import pytest
from commands.forging import commits_of, tip_of
from commands.verify.flipping import (
    Recorded,
    check,
    flipped,
    kind_of,
    list_free,
    parts_of,
    put_over,
)
from dulwich.objects import ObjectID

from uwf_git.commands.verify.verify import verify
from uwf_git.model.names import Oid
from uwf_git.model.thread import EVENTS
from uwf_git.store.refs import list_refs
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import ARCHIVE
from uwf_git.store.threads.history import parse_thread_message

RECORDED = Path(__file__).parent / "recorded" / "format-2.bundle"
# Of each event the newest; of these, which look otherwise in places, one more.
MORE = {"start of a branch", "verdict"}
# A commit has some 1,500 bytes with its tree and now.json: plain pytest changes some of them.
SOME = 29


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store with the recorded threads."""
    path = str(tmp_path_factory.mktemp("recorded"))
    for command in (["init", "-q", "--bare"], ["fetch", "-q", str(RECORDED), "refs/*:refs/*"]):
        subprocess.run(["git", "-C", path, *command], check=True)
    return open_store(path)


@cache
def list_recorded(path: str) -> dict[str, Recorded]:
    """Return a commit of each event."""
    store = open_store(path)
    found: dict[str, Recorded] = {}
    for name in list_refs(path, ARCHIVE):
        for commit in commits_of(store, tip_of(store, ARCHIVE + name)):
            record = parse_thread_message(commit.message)
            parents = [Oid(each.decode()) for each in commit.parents]
            made = Recorded(record.thread, Oid(commit.id.decode()), parents[0] if parents else None)
            found[kind_of(record, made.parent)] = made
    return found


def test_recorded_commits_are_made_again(store: Store) -> None:
    result = verify(store, [])

    assert (result.troubles, result.notes) == ((), ())
    assert list_recorded(store.path).keys() == {*EVENTS, *MORE}


@pytest.mark.parametrize("kind", sorted({*EVENTS, *MORE}))
def test_no_byte_can_be_another(store: Store, kind: str) -> None:
    change_bytes(store, kind, SOME)


def change_bytes(store: Store, kind: str, step: int) -> None:
    """Change every byte, or each *step*th, of commit, tree and now.json in turn."""
    made = list_recorded(store.path)[kind]
    parts = parts_of(store, made.oid)
    assert check(store, made, [], ObjectID(made.oid.encode())) == []

    for name, content in parts.items():
        unseen = set()
        for number in range(0, len(content), step):
            if not check(store, made, *put_over(parts, name, flipped(content, number))):
                unseen.add(number)
        free = list_free(kind, content) if name == "commit" else set()
        shown = [content[max(0, each - 30) : each + 10] for each in sorted(unseen)]
        assert unseen <= free, (name, shown)
