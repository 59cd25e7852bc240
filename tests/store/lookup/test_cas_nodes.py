"""Nodes put by hand, and found anywhere; what damage does to that is in test_damage.py."""

import pytest
from refusing import refuses
from store.story import signed

from uwf_git.model.builtin import BUILTIN, META, META_NODE, TEXT
from uwf_git.model.node import Node, build_node
from uwf_git.store.lookup.lookup import NODES_REF, NodeLookup, NodesMoved, list_nodes, put_nodes
from uwf_git.store.objects.commit import parse_trailers, read_commit, subject_of
from uwf_git.store.oid import Oid
from uwf_git.store.refs.refs import Refs
from uwf_git.store.store import Store

ONE, TWO = (build_node(TEXT, text, timestamp=5) for text in ("one", "two"))


def put(store: Store, *nodes: Node) -> bool:
    return put_nodes(store, nodes, signed(0))


def message_of(store: Store) -> bytes:
    commit = store.refs.find(NODES_REF)
    assert commit is not None
    return read_commit(store.objects, commit).message


def test_the_built_in_nodes_are_there_before_anything_was_put(store: Store) -> None:
    assert NodeLookup(store).find(META) == META_NODE
    assert list(list_nodes(store)) == []
    assert NodeLookup(store).resolve(META[:12]) == META


def test_putting_keeps_the_built_in_nodes_as_well(store: Store) -> None:
    assert put(store)
    assert set(list_nodes(store)) == set(BUILTIN)
    assert subject_of(message_of(store)) == "cas: put the built-in schemas"
    assert not put(store)


def test_put_nodes_are_listed_and_described(store: Store) -> None:
    assert put_nodes(store, (node for node in (ONE, TWO)), signed(0))
    assert set(list_nodes(store)) == {*BUILTIN, ONE.hash, TWO.hash}
    assert subject_of(message_of(store)) == f"cas: put {' '.join(sorted([ONE.hash, TWO.hash]))}"
    assert parse_trailers(message_of(store)) == {"Uwf-Event": "put", "Uwf-Format": "2"}


def test_of_what_is_put_twice_the_first_stays(store: Store) -> None:
    assert put(store, ONE)
    assert put(store, ONE._replace(timestamp=9), TWO)
    assert NodeLookup(store).get(ONE.hash) == ONE
    assert NodeLookup(store).get(TWO.hash) == TWO


def test_a_name_with_another_payload_is_refused(store: Store) -> None:
    put(store, ONE)
    with refuses("node-collision", match=ONE.hash):
        put(store, TWO._replace(hash=ONE.hash))


class _Restless(Refs):
    """Refs that another process moves each time before we do."""

    def __init__(self, git_dir: str, times: int) -> None:
        super().__init__(git_dir, durable=False)
        self.store: Store | None = None
        self.times = times

    def create(self, name: str, to: Oid) -> bool:
        self._interfere()
        return super().create(name, to)

    def advance(self, name: str, *, seen: Oid, to: Oid) -> bool:
        self._interfere()
        return super().advance(name, seen=seen, to=to)

    def _interfere(self) -> None:
        if self.store is not None and self.times:
            self.times -= 1
            store, self.store = self.store, None
            put(store, build_node(TEXT, f"other {self.times}", timestamp=0))
            self.store = store


def restless(store: Store, *, times: int) -> Store:
    refs = _Restless(store.path, times)
    refs.store = store._replace(refs=refs)
    return refs.store


def test_what_others_put_meanwhile_stays_too(store: Store) -> None:
    store = restless(store, times=3)
    assert put(store, ONE)
    others = {build_node(TEXT, f"other {number}", timestamp=0).hash for number in range(3)}
    assert {ONE.hash, *others} <= set(list_nodes(store))


def test_putting_gives_up_after_many_lost_races(store: Store) -> None:
    with pytest.raises(NodesMoved) as caught:
        put(restless(store, times=1000), ONE)
    assert caught.value.exit_status == 4


def test_a_whole_name_is_not_looked_for(store: Store) -> None:
    assert NodeLookup(store).resolve(ONE.hash) == ONE.hash


def test_a_beginning_that_several_have_is_refused_with_some_of_them(store: Store) -> None:
    nodes = [build_node(TEXT, str(number), timestamp=0) for number in range(400)]
    put(store, *nodes)
    matches = sorted(node.hash for node in [*nodes, *BUILTIN.values()] if node.hash[0] == "0")
    with refuses("ambiguous-node") as caught:
        NodeLookup(store).resolve("0")
    assert caught.value.facts["matches"] == matches
    assert caught.value.message.startswith(f"{len(matches)} nodes begin with 0: {matches[0]}, ")
    assert caught.value.message.endswith(f" and {len(matches) - 10} more")
