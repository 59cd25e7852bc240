"""Push batches: send many units at once, and fewer at a time when the remote refuses them.

The changes of a unit are sent apart only to a remote without atomic pushes; then the archive is
created before the active ref is deleted. A hook that refuses one thread refuses the whole push,
so a refused push is halved until the refused unit is alone.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from uwf_git.commands.remote.push_plan import PushUnit
from uwf_git.store.remotes.exchange import PushReport


class UnitResult(NamedTuple):
    """The remote's answer for one unit."""

    unit: PushUnit
    reason: str | None
    """Why it was refused; None if it was done."""

    output: str
    """What the remote's hooks printed."""


class SendUnits(Protocol):
    """Sends some units in one push."""

    def __call__(self, units: Sequence[PushUnit], *, atomic: bool) -> PushReport:
        """Push *units* at once."""


FELL_WITH_OTHERS = "pre-receive: another part of the push was refused"
"""The reason for a change that was refused because of another in the same push."""

REF_MOVED = "incorrect old value provided"
"""git's reason when a ref no longer has the value that the push expected."""

# What git says of each change when it refused the whole push: a hook, `--atomic`, or a bad pack.
_WHOLE_PUSH = ("pre-receive", "atomic", "unpack")

NOT_MOVED = "unable to migrate objects"
"""git's reason when a gc of the server has just removed a folder of objects: it is back now."""

_MOST_TRIES = 3

_UNREPORTED = "the remote did not report the result"
_MOST_PUSHES = 64


def single_units(units: Sequence[PushUnit]) -> list[PushUnit]:
    """Return the units of one change, which need no atomic push."""
    return [unit for unit in units if len(unit.changes) == 1]


def send_units(send: SendUnits, units: Sequence[PushUnit], first: PushReport) -> list[UnitResult]:
    """Return the result of each of *units*; send what the *first* push did not settle.

    The first push held the single units.
    """
    batches = _Batches(send)
    together = [unit for unit in units if len(unit.changes) > 1]
    return [
        *batches.settle(single_units(units), first, atomic=False),
        *batches.send(together, atomic=True),
    ]


class _Batches:
    """Sends batches, at most `_MOST_PUSHES` of them."""

    def __init__(self, send: SendUnits) -> None:
        self._send = send
        self._left = _MOST_PUSHES
        self._tries = _MOST_TRIES

    def send(self, units: Sequence[PushUnit], *, atomic: bool) -> list[UnitResult]:
        """Push *units* and return the result of each."""
        if not units:
            return []
        self._left -= 1
        report = self._send(units, atomic=atomic)
        if not report.is_atomic:
            return self._send_in_order(units)
        return self.settle(units, report, atomic=atomic)

    def settle(
        self, units: Sequence[PushUnit], report: PushReport, *, atomic: bool
    ) -> list[UnitResult]:
        """Return the result of each of *units*; push again what was refused because of others."""
        results = [_judge(unit, report) for unit in units]
        if self._tries > 0 and any(NOT_MOVED in (each.reason or "") for each in results):
            self._tries -= 1
            return self.send(units, atomic=atomic)
        suspects = [each.unit for each in results if each.reason and _is_whole_push(each.reason)]
        if self._left <= 0 or not suspects or len(units) <= 1:
            return results
        if len(suspects) < len(units):
            again = self.send(suspects, atomic=atomic)
        else:
            # The remote does not say which unit it refused: push each half alone.
            middle = len(units) // 2
            halves = (units[:middle], units[middle:])
            again = []
            for half in halves:
                if self._left > 0:
                    again += self.send(half, atomic=atomic)
        later = {each.unit.name: each for each in again}
        return [later.get(each.unit.name, each) for each in results]

    def _send_in_order(self, units: Sequence[PushUnit]) -> list[UnitResult]:
        """Push the first change of each unit, then the rest of those that were accepted."""
        begun = self.send([unit._replace(changes=unit.changes[:1]) for unit in units], atomic=False)
        rest = {unit.name: unit.changes[1:] for unit in units}
        later = [
            each.unit._replace(changes=rest[each.unit.name]) for each in begun if not each.reason
        ]
        ended = {each.unit.name: each for each in self.send(later, atomic=False)}
        found = [ended.get(each.unit.name, each) for each in begun]
        return [each._replace(unit=unit) for each, unit in zip(found, units, strict=True)]


def _judge(unit: PushUnit, report: PushReport) -> UnitResult:
    told = [report.statuses.get(change.ref, _UNREPORTED) for change in unit.changes]
    reasons = [reason for reason in told if reason is not None]
    # The change that caused the refusal has the more specific reason.
    reasons.sort(key=_is_whole_push)
    return UnitResult(unit, reasons[0] if reasons else None, report.output)


def _is_whole_push(reason: str) -> bool:
    return any(word in reason for word in _WHOLE_PUSH)
