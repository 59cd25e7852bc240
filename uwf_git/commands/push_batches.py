"""Push batches: changes sent together, and cut apart when the remote refuses them together.

Owns: how many pushes are made, and in what order. Knows nothing of: what is pushed, and why.
Always true: what belongs together is never sent apart, unless the remote cannot do all or
nothing; then the archive is there before the active ref goes. A hook that refuses one thread of
many refuses the whole push, so such a push is halved until the guilty one stands alone.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from uwf_git.commands.push_plan import Unit


class Answer(NamedTuple):
    """What the remote said of one push."""

    statuses: dict[str, str | None]
    """By ref: None if it was done, else why not."""

    said: str
    """What its hooks said."""

    is_atomic: bool = True
    """False if it was asked to do all or nothing, and cannot."""


class Done(NamedTuple):
    """What became of one unit."""

    unit: Unit
    reason: str | None
    """Why it was refused; None if it was done."""

    said: str


class Send(Protocol):
    """How a batch goes out."""

    def __call__(self, units: Sequence[Unit], *, atomic: bool) -> Answer:
        """Push *units* at once."""


OF_ALL = "pre-receive: another part of the push was refused"
"""Why a change was refused that is not to blame."""

# What git says of each when it took none of them: hooks, `--atomic`, and a pack it did not like.
_WORDS_OF_ALL = ("pre-receive", "atomic", "unpack")

_UNSAID = "the remote did not say what became of it"
_MOST_PUSHES = 64


def single_units(units: Sequence[Unit]) -> list[Unit]:
    """Give the units of one change, which need nothing of the remote but to be taken."""
    return [unit for unit in units if len(unit.changes) == 1]


def send_units(send: Send, units: Sequence[Unit], first: Answer) -> list[Done]:
    """Tell what became of each of *units*, of which the single ones were sent and *first* answered.

    The others are sent now.
    """
    batches = _Batches(send)
    together = [unit for unit in units if len(unit.changes) > 1]
    return [
        *batches.settle(single_units(units), first, atomic=False),
        *batches.send(together, atomic=True),
    ]


class _Batches:
    """Pushes, as many as it takes, but not without end."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._left = _MOST_PUSHES

    def send(self, units: Sequence[Unit], *, atomic: bool) -> list[Done]:
        """Push *units* and tell what became of each."""
        if not units:
            return []
        self._left -= 1
        answer = self._send(units, atomic=atomic)
        if not answer.is_atomic:
            return self._send_in_order(units)
        return self.settle(units, answer, atomic=atomic)

    def settle(self, units: Sequence[Unit], answer: Answer, *, atomic: bool) -> list[Done]:
        """Tell what became of each of *units*; push those again that were refused for others."""
        done = [_judge(unit, answer) for unit in units]
        suspects = [each.unit for each in done if each.reason and _is_of_all(each.reason)]
        if self._left <= 0 or not suspects or len(units) <= 1:
            return done
        if len(suspects) < len(units):
            again = self.send(suspects, atomic=atomic)
        else:
            # Who is to blame is not said: halves will tell.
            middle = len(units) // 2
            halves = (units[:middle], units[middle:])
            again = []
            for half in halves:
                if self._left > 0:
                    again += self.send(half, atomic=atomic)
        later = {each.unit.name: each for each in again}
        return [later.get(each.unit.name, each) for each in done]

    def _send_in_order(self, units: Sequence[Unit]) -> list[Done]:
        """Push the first change of each unit, then the rest of those that went through."""
        begun = self.send([unit._replace(changes=unit.changes[:1]) for unit in units], atomic=False)
        rest = {unit.name: unit.changes[1:] for unit in units}
        later = [
            each.unit._replace(changes=rest[each.unit.name]) for each in begun if not each.reason
        ]
        ended = {each.unit.name: each for each in self.send(later, atomic=False)}
        found = [ended.get(each.unit.name, each) for each in begun]
        return [each._replace(unit=unit) for each, unit in zip(found, units, strict=True)]


def _judge(unit: Unit, answer: Answer) -> Done:
    told = [answer.statuses.get(change.ref, _UNSAID) for change in unit.changes]
    reasons = [reason for reason in told if reason is not None]
    # The one that is to blame says more than those that fell with it.
    reasons.sort(key=_is_of_all)
    return Done(unit, reasons[0] if reasons else None, answer.said)


def _is_of_all(reason: str) -> bool:
    return any(word in reason for word in _WORDS_OF_ALL)
