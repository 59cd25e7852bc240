"""JSON merge patch (RFC 7396, https://www.rfc-editor.org/rfc/rfc7396)."""

from typing import Any


def merge_patch(target: Any, patch: Any) -> Any:
    """Return *target* changed by *patch*, neither modified: objects merge, null removes a key."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result
