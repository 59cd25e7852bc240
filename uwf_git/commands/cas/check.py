"""Check payloads against their types.

A schema that is not built in is only evaluated in a limited child process: a pattern in it may run
forever.
"""

from collections.abc import Callable
from typing import Any

from uwf_git.agents.limited_fork import DEFAULT, RunLimits, run_limited
from uwf_git.errors import Refused
from uwf_git.model.builtin import BUILTIN
from uwf_git.model.canonical import encode
from uwf_git.model.node import Node
from uwf_git.model.plain_schema import is_plainly_valid
from uwf_git.model.problem import Problem

_MIB = 1024 * 1024

_Found = list[tuple[str, str]]


class InvalidPayload(Refused):
    """The payload does not fit its type."""

    code = "invalid-payload"

    def __init__(self, type_node: Node, problems: list[Problem]) -> None:
        first = problems[0]
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems, the first"
        problem = f"{count} at {first.path or 'the top'}: {first.message}"
        if type_node.is_self_typed:
            message = f"this is not a JSON Schema: {problem}"
            hint = "schemas are JSON Schema 2020-12: https://json-schema.org/draft/2020-12"
        else:
            message = f"the payload breaks schema {type_node.hash}: {problem}"
            hint = f"`json-cas schema get {type_node.hash}` shows the schema"
        super().__init__(
            message,
            hint=hint,
            type=type_node.hash,
            problems=[{"path": each.path, "message": each.message} for each in problems],
        )
        self.problems = tuple(problems)


def check_payload(type_node: Node, payload: Any) -> None:
    """Check that *payload* fits *type_node*.

    Raises:
        InvalidPayload: it does not; the error lists every problem.
        Refused: the check exceeds the limits.
    """
    problems = find_problems(type_node, payload)
    if problems:
        raise InvalidPayload(type_node, problems)


def find_problems(type_node: Node, payload: Any) -> list[Problem]:
    """List where *payload* does not fit *type_node*; under a meta-schema it must be a JSON Schema.

    Raises:
        Refused: the check exceeds the limits.
    """
    schema = type_node.payload
    if not type_node.is_self_typed and _is_plain(schema, payload):
        return []
    # jsonschema takes 90 ms to import, which a plainly valid payload saves.
    from uwf_git.model.schema_check import check_schema, check_value  # noqa: PLC0415 (see above)

    def check() -> _Found:
        found = check_schema(payload) if type_node.is_self_typed else []
        return [(each.path, each.message) for each in found or check_value(schema, payload)]

    # The payload of a meta-schema is a foreign schema; checking it compiles its patterns.
    is_ours = type_node.hash in BUILTIN and not type_node.is_self_typed
    found = check() if is_ours else _check_limited(check, size_bytes=len(encode([schema, payload])))
    return [Problem(path, message) for path, message in found]


def _is_plain(schema: Any, payload: Any) -> bool:
    try:
        return is_plainly_valid(schema, payload)
    except RecursionError:
        return False


def _check_limited(check: Callable[[], _Found], *, size_bytes: int) -> _Found:
    # 13 MB of small records take 6 s on a slow machine; a small payload gets little time.
    seconds = 1 + size_bytes // _MIB
    memory_bytes = DEFAULT.memory_bytes + 64 * size_bytes
    limits = RunLimits(memory_bytes=memory_bytes, cpu_s=seconds, wall_s=2.0 * seconds)
    found: _Found = run_limited(check, limits=limits, what="the check against the schema")
    return found
