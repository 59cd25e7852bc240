"""Check a reply's meta against its schema, in a limited fork: a pattern can run for ever."""

from collections.abc import Mapping
from typing import Any

from uwf_git.agents.reply import AgentReply
from uwf_git.commands.split.commits import SplitRefused, find_container
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.engine import flow_state
from uwf_git.errors import UwfError
from uwf_git.model.event_folds import first_line
from uwf_git.model.node import NotCanonical, canonical
from uwf_git.model.plain_schema import is_plainly_valid
from uwf_git.model.thread import find_unfit
from uwf_git.model.workflow import Workflow
from uwf_git.store.objects.commit import DEFAULT_BLOB_BYTES, encode_compact
from uwf_git.store.threads.snapshot import Snapshot, get_role, get_schema

_MOST_TOLD = 5

MOST_REPLY_BYTES = DEFAULT_BLOB_BYTES - 1024**2
"""Of its text, and of all else in it: a node has more, and shared stores take no larger one."""

_STORED = ("meta", "content", "usage", "state", "session")


def get_output_schema(snapshot: Snapshot, workflow: Workflow, role: str) -> Any:
    return get_schema(snapshot, get_role(snapshot, workflow.roles[role]).output_schema)


def find_role_problem(tip: Snapshot, meta: Any) -> str | None:
    """Return why *meta* cannot be the result of the role that a branch plays."""
    split = tip.get_present().split
    if split is None:
        return None
    try:
        container = find_container(tip, split.at)
    except SplitRefused:
        # The join will tell.
        return None
    if container.flow is not None:
        return None
    return find_problem(get_output_schema(tip, container.workflow, container.at), meta)


def check_reply(turn: Turn, workflow: Workflow, played: Played) -> Played:
    """Return *played* if its meta is valid against the role's schema, else a failed turn."""
    reply = played.reply
    if reply is None:
        return played
    schema = get_output_schema(turn.snapshot, workflow, turn.role)
    problem = find_reply_problem(schema, {name: getattr(reply, name) for name in _STORED})
    if problem is None:
        return check_state(turn, played)
    log = first_line(played.stderr.decode(errors="replace").strip().rpartition("\n")[2])
    told = f"{problem}; its log ends: {log[:200]}" if log else problem
    return _fail(played, reply, {"kind": "schema", "message": told})


def check_state(turn: Turn, played: Played) -> Played:
    error = None if played.reply is None else find_flow_problem(turn, played.reply)
    if error is None or played.reply is None:
        return played
    return _fail(played, played.reply, error)


def find_flow_problem(turn: Turn, reply: AgentReply) -> dict[str, str] | None:
    """Return the error if the state after *reply* cannot be stored, or its verdict be read."""
    if turn.place is None:
        return None
    step = {"meta": reply.meta, "state": reply.state}
    state = turn.place.fold(turn.present.state, step, reply.content)
    problem = flow_state.find_state_problem(state)
    if problem is not None:
        return {"kind": "state", "message": problem}
    try:
        turn.place.judge(reply.meta)
    except UwfError as error:
        message = f"its verdict cannot be told: {error.message}"
        return {"kind": "verdict", "message": message}
    return None


def _fail(played: Played, reply: AgentReply, error: dict[str, str]) -> Played:
    output = played.stdout or reply.content.encode(errors="replace")
    return played._replace(reply=None, error=error, stdout=output)


def find_reply_problem(schema: Any, fields: Mapping[str, Any]) -> str | None:
    """Return why *fields* of ``AgentReply``, at least its meta, cannot be recorded; or None."""
    try:
        others = canonical(dict(fields))
    except NotCanonical as error:
        return error.message
    unfit = find_unfit(fields.get("usage") or {})
    if unfit is not None:
        return f"usage: {unfit}"
    content = others.pop("content", "")
    # Bytes that are no UTF-8 take three each, and 9e15 takes sixteen.
    if max(len(content.encode()), len(encode_compact(others))) > MOST_REPLY_BYTES:
        from uwf_git.store.objects.incoming_pack import render_size  # noqa: PLC0415 (start-up time)

        return f"its answer would take more than {render_size(MOST_REPLY_BYTES)} in the store"
    return find_problem(schema, fields["meta"])


def find_problem(schema: Any, meta: Any) -> str | None:
    if is_plainly_valid(schema, meta):
        return None
    # jsonschema costs 60 ms of start-up: imported only if the quick check does not say yes.
    from uwf_git.agents.limited_fork import run_limited  # noqa: PLC0415 (see above)
    from uwf_git.model.schema_check import check_value  # noqa: PLC0415 (see above)

    def check() -> list[str]:
        problems = check_value(schema, meta)
        return [f"{_place(each.path)}: {each.message}" for each in problems]

    try:
        told: list[str] = run_limited(check, what="the check of meta")
    except UwfError as error:
        return f"meta cannot be checked: {error.message}"
    if not told:
        return None
    more = f" (and {len(told) - _MOST_TOLD} more)" if len(told) > _MOST_TOLD else ""
    return "; ".join(told[:_MOST_TOLD]) + more


def list_field_problems(schema: Any, meta: Any) -> list[dict[str, str]]:
    """Return what is wrong with *meta*, for a form, by fields' JSON pointers."""
    from uwf_git.agents.limited_fork import run_limited  # noqa: PLC0415 (see above)
    from uwf_git.model.schema_check import point_out  # noqa: PLC0415 (see above)

    def check() -> list[dict[str, str]]:
        found = point_out(schema, meta)
        return [{"pointer": each.path, "message": each.message} for each in found]

    try:
        told: list[dict[str, str]] = run_limited(check, what="the check of meta")
    except UwfError as error:
        return [{"pointer": "", "message": error.message}]
    return told


def _place(path: str) -> str:
    return f"meta{path}" if path.startswith("[") else f"meta.{path}" if path else "meta"
