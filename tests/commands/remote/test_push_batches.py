from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.commands.remote.push_plan import (
    FELL_WITH_OTHERS,
    PushUnit,
    RefChange,
    send_units,
    single_units,
)
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.incoming import PushReport

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

    def __init__(self, *bad: str, atomic: bool = True, frozen: bool = False) -> None:
        self.bad, self.atomic, self.frozen = set(bad), atomic, frozen
        self.pushes: list[list[str]] = []
        self.refs: dict[str, Oid | None] = {}

    def __call__(self, units: Sequence[PushUnit], *, atomic: bool) -> PushReport:
        if atomic and not self.atomic:
            return PushReport({}, "", is_atomic=False)
        changes = [change for unit in units for change in unit.changes]
        self.pushes.append([change.ref for change in changes])
        if self.frozen or self.bad & {change.ref for change in changes}:
            return PushReport(dict.fromkeys((each.ref for each in changes), DECLINED), "no")
        self.refs.update({change.ref: change.after for change in changes})
        return PushReport({change.ref: None for change in changes}, "")

    def push(self, units: list[PushUnit]) -> dict[str, str | None]:
        """Return why each unit was refused, or None."""
        first = self(single_units(units), atomic=False)
        done = send_units(self, units, first)
        assert len(done) == len(units)
        return {each.unit.name: each.reason for each in done}


def test_what_is_not_refused_goes_in_two_pushes() -> None:
    server = Server()
    assert set(server.push([single("a"), move("b"), single("c"), move("d")]).values()) == {None}
    assert server.pushes == [["a", "c"], ["b", "b-active", "d", "d-active"]]


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
    units = [single(f"t{number}") for number in range(1000)]
    assert set(server.push(units).values()) == {DECLINED}
    assert len(server.pushes) <= 65


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
    reasons = server.push([move("a"), move("b"), move("c")])
    assert reasons == {"a": None, "b": DECLINED, "c": DECLINED}
    assert server.refs == {"a": B, "c": B, "a-active": None}


def test_unit_that_failed_because_of_another_is_sent_again() -> None:
    told: list[list[str]] = []

    def send(units: Sequence[PushUnit], *, atomic: bool) -> PushReport:
        assert atomic
        names = [change.ref for unit in units for change in unit.changes]
        told.append(names)
        if "b" not in names:
            return PushReport(dict.fromkeys(names), "")
        return PushReport({**dict.fromkeys(names, FELL_WITH_OTHERS), "b": "hook declined"}, "")

    done = send_units(send, [move("a"), move("b")], PushReport({}, ""))
    assert [(each.unit.name, each.reason) for each in done] == [("a", None), ("b", "hook declined")]
    assert told == [["a", "a-active", "b", "b-active"], ["a", "a-active"]]
