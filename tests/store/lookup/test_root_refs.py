"""Which refs keep nodes, and the order in which they are searched."""

import os

import pytest
from store.conftest import Git

from uwf_git.store.lookup.lookup import (
    follow,
    is_root_ref,
    list_loose_roots,
    list_packed_roots,
    list_root_refs,
)
from uwf_git.store.oid import Oid
from uwf_git.store.refs.refs import BadPackedRefs, stamp_packed
from uwf_git.store.store import Store

OLD, NEW = "01J00000000000000000000001", "01J00000000000000000000002"
REFS = [
    "refs/cas/nodes",
    "refs/workflows/demo",
    f"refs/threads/{NEW}",
    f"refs/threads/{OLD}",
    f"refs/archive/{NEW}",
    f"refs/archive/{OLD}",
]


def write(store: Store, refs: list[str]) -> dict[str, Oid]:
    oids = {ref: Oid(f"{number:040x}") for number, ref in enumerate(refs, 1)}
    for ref, oid in oids.items():
        assert store.refs.create(ref, oid)
    return oids


def pack(store: Store, oids: dict[str, Oid]) -> None:
    lines = [f"{oid} {ref}\n" for ref, oid in sorted(oids.items())]
    header = "# pack-refs with: peeled fully-peeled sorted \n"
    # In one move, as git does it.
    with open(f"{store.path}/packed-refs.new", "w", encoding="utf-8") as file:
        file.write("".join([header, *lines]))
    os.replace(file.name, f"{store.path}/packed-refs")


def test_nodes_put_by_hand_come_first_and_the_newest_threads_before_the_older(
    store: Store,
) -> None:
    write(store, [*reversed(REFS), "refs/heads/main", "refs/uwf/remotes/o/threads/x"])
    assert list(list_root_refs(store)) == REFS


def test_loose_ones_are_listed_with_what_they_point_at(store: Store) -> None:
    oids = write(store, [*REFS, "refs/heads/main"])
    for name, content in (("broken", "no id"), (f"{NEW}.lock", "1" * 40)):
        with open(f"{store.path}/refs/threads/{name}", "w", encoding="ascii") as file:
            file.write(content)
    assert list(list_loose_roots(store)) == [(ref, oids[ref]) for ref in REFS]
    assert list(list_packed_roots(store)) == []


def test_packed_ones_are_listed_with_what_they_point_at(store: Store) -> None:
    oids = {ref: Oid(f"{number:040x}") for number, ref in enumerate([*REFS, "refs/tags/v1"], 1)}
    pack(store, oids)
    assert list(list_loose_roots(store)) == []
    assert dict(list_packed_roots(store)) == {ref: oids[ref] for ref in REFS}
    assert [ref for ref, _oid in list_packed_roots(store) if "/threads/" in ref] == REFS[2:4]


def test_what_git_packs_is_what_we_list(store: Store, git: Git) -> None:
    tree = git("mktree", cwd=store.path).strip()
    commit = git("commit-tree", "-m", "x", tree, cwd=store.path).strip()
    for ref in REFS:
        assert store.refs.create(ref, Oid(commit))
    git("pack-refs", "--all", cwd=store.path)
    assert dict(list_packed_roots(store)) == dict.fromkeys(REFS, commit)


def test_a_packed_file_that_git_would_not_read_is_reported(store: Store) -> None:
    with open(f"{store.path}/packed-refs", "w", encoding="ascii") as file:
        file.write(f"{1:040x} refs/thr")
    with pytest.raises(BadPackedRefs):
        list(list_packed_roots(store))


def test_the_stamp_tells_one_packed_file_from_another(store: Store) -> None:
    assert stamp_packed(store.path) == ""
    before = ""
    for number in range(3):
        pack(store, {REFS[0]: Oid(f"{number:040x}")})
        assert stamp_packed(store.path) != before
        before = stamp_packed(store.path)
    assert stamp_packed(store.path) == before


def test_an_active_thread_is_followed_into_the_archive() -> None:
    assert follow(f"refs/threads/{OLD}") == (f"refs/threads/{OLD}", f"refs/archive/{OLD}")
    assert follow("refs/workflows/demo") == ("refs/workflows/demo",)


@pytest.mark.parametrize("ref", ["None", "refs/heads/main", "refs/threads/\0", "refs/threads/../x"])
def test_what_a_damaged_index_may_say_is_no_ref_that_keeps_nodes(ref: str) -> None:
    assert not is_root_ref(ref)
    assert all(is_root_ref(each) for each in REFS)
