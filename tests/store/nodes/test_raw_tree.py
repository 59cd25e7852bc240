"""Raw entries are put where git wants them."""

from dulwich.objects import ObjectID, Tree
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.store.nodes.tree import build_tree, parse_entry, put_entry

NAMES = st.text("A.01/b", min_size=1, max_size=3).map(lambda name: name.replace("/", "-").encode())
# Ids with spaces and zeros look like the beginnings of entries.
IDS = st.lists(st.sampled_from([0x00, 0x20, 0x31, 0x41]), min_size=20, max_size=20).map(bytes)
ENTRIES = st.lists(st.tuples(NAMES, st.sampled_from([0o100644, 0o40000]), IDS), max_size=12)


@given(ENTRIES)
def test_a_tree_is_the_one_that_dulwich_writes(added: list[tuple[bytes, int, bytes]]) -> None:
    tree, entries = Tree(), list[bytes]()

    for name, mode, raw in added:
        oid = ObjectID(raw.hex().encode())
        tree[name] = mode, oid
        put_entry(entries, mode, name, oid)

    assert build_tree(entries).id == tree.id
    assert {parse_entry(each)[0] for each in entries} == {name for name, _, _ in added}
