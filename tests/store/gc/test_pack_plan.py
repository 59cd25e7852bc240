import os
from collections.abc import Callable

import pytest
from dulwich.objects import Blob, ObjectID, Tree
from dulwich.pack import apply_delta
from store.loose import loosen
from store.story import Story, put_raw

from uwf_git.store.gc.loose_objects import list_loose_objects
from uwf_git.store.gc.pack_plan import BLOB, COMMIT, TAG, TREE, Planned, list_reachable, plan_pack
from uwf_git.store.objects.objects import DamagedObject
from uwf_git.store.store import Store


@pytest.fixture
def story(store: Store, clock: Callable[[], int]) -> Story:
    """Return a thread of sixty steps."""
    told = Story(store, clock)
    for number in range(60):
        told.step(text=f"The text of step {number}.\n" * 20)
    return told


def tip(story: Story) -> ObjectID:
    return ObjectID(story.head.commit.encode())


def loose(store: Store) -> set[ObjectID]:
    loosen(store)
    return set(list_loose_objects(f"{store.path}/objects"))


def planned(store: Store, *tips: ObjectID) -> dict[ObjectID, Planned]:
    return plan_pack(store.objects, loose(store), tips)


def test_all_that_a_tip_needs_is_planned_and_nothing_else(store: Store, story: Story) -> None:
    stray = put_raw(store, "blob", b"written, and not yet needed")
    plan = planned(store, tip(story))
    assert plan.keys() == loose(store) - {stray}
    assert plan.keys() == list_reachable(store.objects, [tip(story)])


def test_every_object_is_planned_with_its_kind(store: Store, story: Story) -> None:
    plan = planned(store, tip(story))
    for oid, each in plan.items():
        kind, content = store.objects.get_raw(oid)
        assert each.kind == kind
        if each.delta is not None:
            assert each.base is not None
            base = store.objects.get_raw(each.base)[1]
            assert b"".join(apply_delta(base, each.delta)) == content


def test_a_base_comes_first_and_chains_are_no_longer_than_gits(store: Store, story: Story) -> None:
    depths: dict[ObjectID, int] = {}
    for oid, each in planned(store, tip(story)).items():
        depths[oid] = 0 if each.base is None else depths[each.base] + 1
    assert max(depths.values()) == 50


def test_newest_tree_is_whole_and_older_ones_are_deltas(store: Store, story: Story) -> None:
    plan = planned(store, tip(story))
    assert plan[tip(story)].delta is None
    trees = [each for each in plan.values() if each.kind == TREE]
    assert sum(each.delta is not None for each in trees) > 150
    assert sum(each.delta is not None for each in plan.values() if each.kind == COMMIT) > 50


def test_the_walk_ends_at_what_is_packed(store: Store, story: Story) -> None:
    before = loose(store)
    story.step()
    plan = plan_pack(store.objects, loose(store) - before, [tip(story)])
    assert plan.keys() == loose(store) - before


def test_what_cannot_be_read_is_left_out(store: Store, story: Story) -> None:
    oid = store.objects[tip(story)].id
    path = f"{store.path}/objects/{oid[:2].decode()}/{oid[2:].decode()}"
    whole = loose(store)
    with open(f"{path}.new", "wb") as file:
        file.write(b"damage")
    os.replace(f"{path}.new", path)
    assert plan_pack(store.objects, whole, [oid, ObjectID(b"1" * 40)]) == {}
    with pytest.raises(DamagedObject):
        list_reachable(store.objects, [oid])
    with pytest.raises(KeyError):
        list_reachable(store.objects, [ObjectID(b"1" * 40)])


def test_tags_lead_to_what_they_point_at(store: Store, story: Story) -> None:
    target = tip(story)
    told = b"object %s\ntype commit\ntag v1\ntagger a <b> 0 +0000\n\nwords\n" % target
    tag = put_raw(store, "tag", told)
    plan = planned(store, tag)
    assert plan[tag].kind == TAG
    assert plan[target].kind == COMMIT


def test_submodules_are_not_ours(store: Store) -> None:
    tree = Tree()
    tree.add(b"module", 0o160000, ObjectID(b"1" * 40))
    blob = Blob.from_string(b"x")
    tree.add(b"x", 0o100644, blob.id)
    store.objects.add_objects([(tree, None), (blob, None)])
    assert {oid: each.kind for oid, each in planned(store, tree.id).items()} == {
        tree.id: TREE,
        blob.id: BLOB,
    }
