"""Fitting: does a meta keep to the role's schema.

Owns: the check as the kit makes it; the engine makes its own. Knows nothing of: where it stood.
"""

from typing import Any

from uwf_git.model.plain_schema import is_plainly_valid


def find_misfit(meta: Any, schema: dict[str, Any] | bool) -> str:  # noqa: FBT001 (true is a schema, no switch)
    """Tell what is wrong with *meta*; "" if it fits."""
    try:
        if is_plainly_valid(schema, meta):
            return ""
    except RecursionError:
        return "it is nested too deeply"
    # jsonschema costs 75 ms, which what is plainly right need not pay.
    from uwf_git.model.schema_check import check_value  # noqa: PLC0415 (see above)

    for problem in check_value(schema, meta):
        return f"{problem.path}: {problem.message}" if problem.path else problem.message
    return ""
