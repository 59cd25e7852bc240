"""The chain of commits with nodes, common to workflows and to nodes put by hand."""

import pytest
from cas_nodes import new_caller
from commands.forging import also, forge, holds, place, says, tip_of
from dulwich.objects import Commit, ObjectID

from uwf_git.commands.cas import put_payload
from uwf_git.commands.verify.history import Finding
from uwf_git.commands.verify.puts import check_puts
from uwf_git.model.names import NodeHash, Oid
from uwf_git.store.lookup import NODES_REF
from uwf_git.store.store import Store


@pytest.fixture
def notes(store: Store) -> list[NodeHash]:
    """Put three notes, one a commit."""
    caller = new_caller()
    return [put_payload(store, caller, "Text", f"note {number}").hash for number in range(3)]


def found(store: Store, *, known: Oid | None = None) -> list[Finding]:
    return list(check_puts(store, [(NODES_REF, tip_of(store, NODES_REF), known)]))


def told(store: Store, *, known: Oid | None = None) -> list[str]:
    return [each.message for each in found(store, known=known)]


def test_removed_node_is_reported_where_none_may_go(store: Store, notes: list[NodeHash]) -> None:
    forge(store, NODES_REF, {-1: holds(store, place(notes[0], ".md"), None)})

    assert told(store) == [f"node {notes[0]} was in the commit before and is missing"]


def test_only_what_is_not_known_is_looked_at(store: Store, notes: list[NodeHash]) -> None:
    before = tip_of(store, NODES_REF)
    oids = forge(store, NODES_REF, {0: says("Uwf-Event: put", "Uwf-Event: pot")})

    assert told(store, known=oids[0]) == []
    assert told(store, known=oids[-1]) == []
    assert told(store, known=before) == [
        f"{oids[-1]} does not descend from {before}, where {NODES_REF} was",
        "Uwf-Event is pot, and must be put",
    ]


def test_each_thing_that_git_or_uwf_would_not_write_is_reported(
    store: Store, notes: list[NodeHash]
) -> None:
    def strange(commit: Commit) -> None:
        commit.parents = [*commit.parents, *commit.parents]
        commit.commit_time = commit.author_time = 1

    change = also(
        strange,
        says("\n\nUwf-Event: put", "\n\nhello\n\nUwf-Event: put"),
        says("Uwf-Format: 2\n", ""),
        holds(store, "junk", b"x"),
    )
    oids = forge(store, NODES_REF, {1: change})

    messages = [each.message for each in found(store) if each.commit == oids[1]]
    assert [each.replace(oids[1], "C")[:50] for each in messages] == [
        "commit C has a line between subject and trailers t",
        "the commit has 2 parents, and may have one",
        messages[2][:50],
        "the commit has junk, which does not belong there",
        "the message of commit C has no number in Uwf-Forma",
    ]
    assert messages[2].startswith("its date, 1, is before that of its parent, ")


def test_history_that_breaks_off_is_reported(store: Store, notes: list[NodeHash]) -> None:
    def cut(commit: Commit) -> None:
        commit.parents = [ObjectID(b"1" * 40)]

    forge(store, NODES_REF, {1: cut})

    assert told(store) == [f"the history of {NODES_REF} breaks off: commit {'1' * 40} is missing"]
