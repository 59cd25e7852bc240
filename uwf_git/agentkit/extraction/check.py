"""Check a meta against the role's schema, before the engine makes its own check."""

from typing import Any

from uwf_git.model.plain_schema import is_plainly_valid


def find_misfit(meta: Any, schema: dict[str, Any] | bool) -> str:  # noqa: FBT001 (true is a schema, no switch)
    """Return what is wrong with *meta*; "" if it fits."""
    try:
        if is_plainly_valid(schema, meta):
            return ""
    except RecursionError:
        return "it is nested too deeply"
    # jsonschema costs 75 ms, and most values are valid.
    from uwf_git.model.schema_check import check_value  # noqa: PLC0415 (see above)

    for problem in check_value(schema, meta):
        return f"{problem.path}: {problem.message}" if problem.path else problem.message
    return ""
