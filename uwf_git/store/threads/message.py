"""Thread messages: a transition record as the trailers of a commit.

Format: FORMAT.md, "The trailers of a thread commit".
"""

from uwf_git.model.node_hash import NodeHash, is_node_hash
from uwf_git.model.thread import EVENTS, STATUSES, Event, Status
from uwf_git.model.thread_id import ThreadId, is_thread_id
from uwf_git.model.transition_record import FORMAT, TransitionRecord
from uwf_git.store.objects.message import BadMessage, build_message, parse_trailers

_FORKED_FROM = "Uwf-Forked-From"
_PARENT = "Uwf-Parent-Thread"
_LONGEST_NUMBER = 15


def build_thread_message(record: TransitionRecord, *, said: str, body: str = "") -> bytes:
    """Write the message of a thread commit; the subject is ``<role or event>: <said>``."""
    return build_message(
        record.role or record.event, said, body=body, trailers=_build_trailers(record)
    )


def parse_thread_message(message: bytes) -> TransitionRecord:
    """Read the record back from the message of a thread commit.

    Raises:
        BadMessage: it is not a message that uwf writes, or of a newer format.
    """
    trailers = parse_trailers(message)
    _natural(trailers, "Uwf-Format")
    return TransitionRecord(
        thread=_thread(_required(trailers, "Uwf-Thread")),
        event=_event(_required(trailers, "Uwf-Event")),
        status=_status(_required(trailers, "Uwf-Status")),
        node=_node(trailers, "Uwf-Node"),
        depth=_natural(trailers, "Uwf-Depth"),
        workflow=_node(trailers, "Uwf-Workflow"),
        workflow_name=_required(trailers, "Uwf-Workflow-Name"),
        role=trailers.get("Uwf-Role"),
        agent=trailers.get("Uwf-Agent"),
        attempt=_natural(trailers, "Uwf-Attempt") if "Uwf-Attempt" in trailers else None,
        forked_from=_thread(trailers[_FORKED_FROM]) if _FORKED_FROM in trailers else None,
        signal=_node(trailers, "Uwf-Signal") if "Uwf-Signal" in trailers else None,
        at=trailers.get("Uwf-At"),
        parent_thread=_thread(trailers[_PARENT]) if _PARENT in trailers else None,
    )


def _build_trailers(record: TransitionRecord) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str | int | None]] = [
        ("Uwf-Thread", record.thread),
        (_PARENT, record.parent_thread),
        ("Uwf-Event", record.event),
        ("Uwf-Status", record.status),
        ("Uwf-Node", record.node),
        ("Uwf-Depth", record.depth),
        ("Uwf-Workflow", record.workflow),
        ("Uwf-Workflow-Name", record.workflow_name),
        ("Uwf-Role", record.role),
        ("Uwf-Agent", record.agent),
        ("Uwf-At", record.at),
        ("Uwf-Attempt", record.attempt),
        (_FORKED_FROM, record.forked_from),
        ("Uwf-Signal", record.signal),
        ("Uwf-Format", FORMAT),
    ]
    return [(name, str(value)) for name, value in pairs if value not in {None, ""}]


def _required(trailers: dict[str, str], name: str) -> str:
    try:
        return trailers[name]
    except KeyError:
        raise BadMessage(f"has no {name}") from None


def _thread(text: str) -> ThreadId:
    if not is_thread_id(text):
        raise BadMessage(f"names no thread: {text[:40]!r}")
    return ThreadId(text)


def _event(text: str) -> Event:
    if text not in EVENTS:
        raise BadMessage(f"has an unknown event: {text[:40]!r}")
    return text  # type: ignore[return-value]  # EVENTS are the Literal's own words


def _status(text: str) -> Status:
    if text not in STATUSES:
        raise BadMessage(f"has an unknown status: {text[:40]!r}")
    return text  # type: ignore[return-value]  # STATUSES are the Literal's own words


def _node(trailers: dict[str, str], name: str) -> NodeHash:
    text = _required(trailers, name)
    if not is_node_hash(text):
        raise BadMessage(f"has no node in {name}: {text[:40]!r}")
    return NodeHash(text)


def _natural(trailers: dict[str, str], name: str) -> int:
    text = _required(trailers, name)
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER):
        raise BadMessage(f"has no number in {name}: {text[:40]!r}")
    return int(text)
