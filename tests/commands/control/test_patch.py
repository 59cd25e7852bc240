import pytest
from commands.forging import messages
from commands.world import World
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.commands.control.steer import patch_thread
from uwf_git.model.event_folds import merge_patch

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
PATCHES = st.lists(
    st.dictionaries(st.sampled_from("abc"), JSON, min_size=1, max_size=3), max_size=4
)


@given(patches=PATCHES)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_state_is_the_fold_of_all_patches(patches: list[dict[str, object]], world: World) -> None:
    thread = world.begun()
    expected: dict[str, object] = {}

    for patch in patches:
        patch_thread(world.store, world.caller, thread, patch)
        expected = merge_patch(expected, patch)

    assert world.snapshot(thread).get_present().state == expected
    assert messages(world, thread) == []


@pytest.mark.parametrize("patch", [[], 5, "x", None, {}, [{"op": "add"}]])
def test_what_is_no_merge_patch_changes_nothing(patch: object, world: World) -> None:
    thread = world.begun()
    before = world.snapshot(thread).commit.oid

    with refuses("bad-patch") as caught:
        patch_thread(world.store, world.caller, thread, patch)

    assert caught.value.exit_status == 2
    assert world.snapshot(thread).commit.oid == before
