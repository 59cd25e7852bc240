from collections.abc import Callable, Sequence

import pytest
from fresh_store import fresh_store
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store.story import THREAD, Story

from uwf_git.commands.remote.push_plan import NotPushed, PushUnit, RefChange, plan_push
from uwf_git.store.objects.commit import is_descendant
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.remotes import SharedRefs

ACTIVE, ARCHIVE = f"refs/threads/{THREAD}", f"refs/archive/{THREAD}"
UNKNOWN = Oid("9" * 40)


class Tale:
    """A thread of three commits, and another way after the first."""

    def __init__(self, clock: Callable[[], int]) -> None:
        story = Story(fresh_store(), clock)
        self.objects = story.store.objects
        self.one = story.head.commit
        self.other = story.write_step("writer", "another way")
        self.two = story.step().commit
        self.end = story.write_end()


@pytest.fixture
def tale(clock: Callable[[], int]) -> Tale:
    return Tale(clock)


def named(tale: Tale, sides: Sequence[str | None]) -> SharedRefs:
    """Lay out the active and the archive ref of one side by the names of commits."""
    return side(commit_of(tale, sides[0]), commit_of(tale, sides[1]))


def commit_of(tale: Tale, which: str | None) -> Oid | None:
    """Return the commit of that name."""
    if which is None:
        return None
    return UNKNOWN if which == "unknown" else Oid(getattr(tale, which))


def side(active: Oid | None = None, archived: Oid | None = None) -> SharedRefs:
    return SharedRefs(
        {THREAD: active} if active else {}, {THREAD: archived} if archived else {}, {}
    )


def planned(tale: Tale, here: SharedRefs, there: SharedRefs) -> PushUnit | NotPushed:
    plan = plan_push(tale.objects, here, there)
    found: list[PushUnit | NotPushed] = [*plan.units, *plan.left]
    assert len(found) == 1
    return found[0]


def test_an_archived_thread_takes_the_place_of_the_active_one(tale: Tale) -> None:
    unit = planned(tale, side(archived=tale.end), side(tale.one))
    assert unit == PushUnit(
        ARCHIVE,
        (
            RefChange(ARCHIVE, None, tale.end, "archived"),
            RefChange(ACTIVE, tale.one, None, "deleted"),
        ),
    )


def test_what_is_left_of_a_move_here_is_not_pushed(tale: Tale) -> None:
    unit = planned(tale, side(tale.two, tale.end), side())
    assert unit == PushUnit(ARCHIVE, (RefChange(ARCHIVE, None, tale.end, "archived"),))


def test_what_others_have_is_left_alone(tale: Tale) -> None:
    for here, there, standing in [
        (("two", None), ("two", None), "unchanged"),
        ((None, "end"), (None, "end"), "unchanged"),
        (("one", None), ("two", None), "behind"),
        (("two", None), ("other", None), "diverged"),
        (("two", None), ("unknown", None), "fetch-first"),
        (("two", None), (None, "end"), "fetch-first"),
        (("two", None), (None, "unknown"), "fetch-first"),
        (("other", None), (None, "end"), "diverged"),
        ((None, "end"), ("other", None), "diverged"),
        ((None, "end"), ("unknown", None), "fetch-first"),
        ((None, "end"), (None, "unknown"), "fetch-first"),
        ((None, "end"), ("other", "end"), "diverged"),
    ]:
        left = planned(tale, named(tale, here), named(tale, there))
        assert isinstance(left, NotPushed)
        assert left.standing == standing


def test_workflows_only_move_forward(tale: Tale) -> None:
    def flow(oid: Oid) -> SharedRefs:
        return SharedRefs({}, {}, {"demo": oid})

    assert isinstance(planned(tale, flow(tale.two), flow(tale.one)), PushUnit)
    assert isinstance(planned(tale, flow(tale.two), side()), PushUnit)
    for there in (tale.end, tale.other, UNKNOWN):
        assert isinstance(planned(tale, flow(tale.two), flow(there)), NotPushed)


NAMES = st.sampled_from(["one", "two", "end", "other", "unknown", None])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(here=st.tuples(NAMES, NAMES), there=st.tuples(NAMES, NAMES))
def test_no_plan_takes_anything_away(
    tale: Tale, here: tuple[str | None, ...], there: tuple[str | None, ...]
) -> None:
    ours = named(tale, [each if each != "unknown" else None for each in here])
    theirs = named(tale, there)
    plan = plan_push(tale.objects, ours, theirs)
    after = {f"refs/{kind}/{name}": oid for kind, name, oid in theirs.rows()}
    for unit in plan.units:
        for change in unit.changes:
            assert after.get(change.ref) == change.before
            after[change.ref] = change.after  # type: ignore[assignment]  # None is a deletion
    left = [oid for oid in after.values() if oid is not None]
    for _kind, _name, oid in theirs.rows():
        assert any(is_descendant(tale.objects, each, oid) for each in left)


def test_a_ref_without_new_commits_is_behind(tale: Tale) -> None:
    for here, seen, standing in [
        ("two", "two", "behind"),
        ("one", "two", "behind"),
        ("two", "one", "fetch-first"),
        ("two", "other", "fetch-first"),
        ("two", None, "fetch-first"),
        ("unknown", "two", "damaged"),
    ]:
        sides = named(tale, (here, None)), side(Oid("8" * 40)), named(tale, (seen, None))
        plan = plan_push(tale.objects, *sides[:2], seen=sides[2])
        assert [each.standing for each in plan.left] == [standing]
