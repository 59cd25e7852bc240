from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from commands.sharing import make_hub
from commands.world import World
from fresh_store import fresh_store
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusing import refuses
from store.story import THREAD, Story

from uwf_git.commands.remote.push import push_remote
from uwf_git.commands.remote.push_plan import (
    NotPushed,
    PushUnit,
    RefChange,
    find_first_push,
    plan_push,
    remove_remote,
    repair_remotes,
    send_units,
    single_units,
)
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.git.config import add_config, list_mirrors, set_config
from uwf_git.store.objects.commit import is_descendant
from uwf_git.store.remotes.incoming import PushReport
from uwf_git.store.remotes.remotes import SharedRefs, add_remote, list_remotes

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
        ((None, "end"), ("other", "end"), "unchanged"),
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
    # It ended there, and work that waits here keeps a fetch from taking that over.
    mine, theirs = named(tale, ("two", None)), named(tale, (None, "end"))
    assert plan_push(tale.objects, mine, theirs, seen=theirs).left[0].standing == "behind"


@pytest.fixture
def project(world: World) -> World:
    """Return a world whose store has a work tree, and a remote."""
    hub = make_hub(world.place.parent / "first")
    add_remote(world.store, "origin", str(hub), cwd=world.caller.cwd)
    world.configure("core.bare", "false")
    return world


def test_first_push_of_a_project_is_described_until_it_was_made(project: World) -> None:
    store = project.store
    assert find_first_push(store, None) is None  # there is nothing to send
    thread, _other = project.begun(), project.begun()
    first = find_first_push(store, None)
    assert first is not None
    assert (first.remote.name, first.threads, first.workflows) == ("origin", 2, 1)
    assert first.url.endswith("hub.git")
    one = find_first_push(store, "origin", [thread])
    assert one is not None
    assert (one.threads, one.workflows) == (1, 0)
    push_remote(store, project.caller, None, [thread])
    assert find_first_push(store, None) is None


A, B = Oid("a" * 40), Oid("b" * 40)
DECLINED = "pre-receive hook declined"


def single(name: str) -> PushUnit:
    return PushUnit(name, (RefChange(name, None, A, "created"),))


def move(name: str) -> PushUnit:
    return PushUnit(
        name,
        (RefChange(name, None, B, "archived"), RefChange(f"{name}-active", A, None, "deleted")),
    )


class Server:
    """A remote that refuses some refs, with all that is pushed together with them."""

    def __init__(
        self, *bad: str, atomic: bool = True, frozen: bool = False, keeps: bool = False
    ) -> None:
        self.bad, self.atomic, self.frozen, self.keeps = set(bad), atomic, frozen, keeps
        self.pushes: list[list[str]] = []
        self.refs: dict[str, Oid | None] = {}

    def __call__(self, units: Sequence[PushUnit], *, atomic: bool) -> PushReport:
        if atomic and not self.atomic:
            return PushReport({}, "", is_atomic=False)
        changes = [change for unit in units for change in unit.changes if change.is_sent]
        self.pushes.append([change.ref for change in changes])
        is_kept = self.keeps and not all(change.after for change in changes)
        if self.frozen or is_kept or self.bad & {change.ref for change in changes}:
            return PushReport(dict.fromkeys((each.ref for each in changes), DECLINED), "no")
        self.refs.update({change.ref: change.after for change in changes})
        return PushReport({change.ref: None for change in changes}, "")

    def push(self, units: list[PushUnit]) -> dict[str, str | None]:
        """Return why each unit was refused, or None."""
        done = send_units(self, units, self(single_units(units), atomic=False))
        assert len(done) == len(units)
        return {each.unit.name: each.reason for each in done}


@given(st.integers(1, 40), st.sets(st.integers(0, 39), max_size=3), st.booleans())
def test_only_the_refused_refs_fail(count: int, bad: set[int], is_move: bool) -> None:  # noqa: FBT001 (drawn)
    make = move if is_move else single
    units = [make(f"t{number}") for number in range(count)]
    server = Server(*(f"t{number}" for number in bad))
    refused = {name for name, reason in server.push(units).items() if reason}
    assert refused == {f"t{number}" for number in bad if number < count}
    assert len(server.pushes) <= 2 + 3 * 14


def test_pushes_to_a_remote_that_refuses_everything_end() -> None:
    server = Server(frozen=True)
    assert set(server.push([single(f"t{number}") for number in range(1000)]).values()) == {DECLINED}
    assert len(server.pushes) <= 65


@pytest.mark.parametrize("atomic", [True, False])
def test_a_remote_where_nothing_is_deleted_gets_each_end(*, atomic: bool) -> None:
    server = Server("c", keeps=True, atomic=atomic)
    left = PushUnit("d", (RefChange("d-active", A, None, "deleted"),))
    reasons = server.push([move("a"), move("b"), move("c"), left, single("e")])
    assert reasons == {"a": None, "b": None, "c": DECLINED, "d": None, "e": None}
    assert server.refs == {"a": B, "b": B, "e": A}


@pytest.mark.parametrize("times", [1, 3, 4])
def test_push_that_met_the_server_s_gc_is_sent_again(times: int) -> None:
    """git's words, for all of the push: objects come first, so that nothing of it has happened."""
    server = Server()
    left = times

    def send(units: Sequence[PushUnit], *, atomic: bool) -> PushReport:
        nonlocal left
        if not left:
            return server(units, atomic=atomic)
        left -= 1
        reason = "unable to migrate objects to permanent storage"
        return PushReport({each.ref: reason for unit in units for each in unit.changes}, "")

    units = [single("a"), single("b")]
    done = send_units(send, units, send(units, atomic=False))
    assert {each.reason is None for each in done} == {times <= 3}
    assert server.pushes == ([["a", "b"]] if times <= 3 else [])


def test_without_atomic_pushes_the_archive_is_there_first() -> None:
    server = Server("b", "c-active", atomic=False)
    assert server.push([move("a"), move("b"), move("c")]) == {"a": None, "b": DECLINED, "c": None}
    assert server.refs == {"a": B, "c": B, "a-active": None}


def test_without_atomic_pushes_a_join_waits_for_all_its_branches() -> None:
    ends = [change for name in "ab" for change in move(name).changes]
    joined = PushUnit("t", (RefChange("t", A, B, "moved"), *ends))
    server = Server("b", atomic=False)
    assert server.push([joined]) == {"t": DECLINED}
    assert not server.refs.keys() & {"t", "a-active", "b-active"}
    whole = Server(atomic=False)
    assert whole.push([joined]) == {"t": None}
    assert whole.pushes[-3:] == [["a", "b"], ["t"], ["a-active", "b-active"]]


def test_a_url_is_kept_as_it_was_given_and_shown_without_a_password(world: World) -> None:
    remote = add_remote(world.store, "origin", "https://me:secret@host/x", cwd=world.caller.cwd)
    world.reopen()
    assert world.store.config.get("remote.origin.url") == "https://me:secret@host/x"
    assert remote.shown == "https://host/x"


def test_a_remote_of_the_user_s_is_not_this_store_s_to_remove(world: World) -> None:
    set_config(world.caller.environ["GIT_CONFIG_GLOBAL"], "remote.mine.url", "/x")
    world.reopen()
    assert [remote.name for remote in list_remotes(world.store.config)] == ["mine"]
    with refuses("remote-elsewhere"):
        remove_remote(world.store, "mine")


def make_mirrors(world: World, *names: str) -> None:
    for name in names:
        set_config(f"{world.store.path}/config", f"remote.{name}.mirror", "true")
        world.configure(f"remote.{name}.url", "/x")


def test_every_mirror_is_repaired_or_the_one_that_is_named(world: World) -> None:
    make_mirrors(world, "a", "b", "c")
    assert repair_remotes(world.store, world.caller, "b") == ["b"]
    world.reopen()
    assert list_mirrors(world.store.config) == ["a", "c"]
    assert repair_remotes(world.store, world.caller, "b") == []
    assert repair_remotes(world.store, world.caller, None) == ["a", "c"]
    world.reopen()
    assert repair_remotes(world.store, world.caller, None) == []
    with refuses("no-such-remote"):
        repair_remotes(world.store, world.caller, "d")


def test_settings_of_the_user_are_named_and_not_changed(world: World, tmp_path: Path) -> None:
    add_remote(world.store, "origin", "/x", cwd=world.caller.cwd)
    config = tmp_path / "gitconfig"
    add_config(str(config), "remote.origin.fetch", "+refs/*:refs/*")
    before = config.read_text()
    caller = world.caller._replace(environ={"GIT_CONFIG_GLOBAL": str(config)})
    world.caller = caller
    world.reopen()
    with refuses("mirror-elsewhere", match="origin is a mirror by settings outside"):
        repair_remotes(world.store, caller, None)
    assert config.read_text() == before


def test_in_a_mirror_nothing_is_recorded(world: World, thread: ThreadId) -> None:
    make_mirrors(world, "origin")
    before = world.store.refs.find(f"refs/threads/{thread}")
    for record in (world.begun, lambda: world.step(thread)):
        with refuses("mirror-store"):
            record()
    assert world.store.refs.find(f"refs/threads/{thread}") == before
