"""Whether a stream gets colours. Sources: https://no-color.org, https://force-color.org."""

from collections.abc import Mapping


def wants_colour(environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Return whether a stream gets colours; NO_COLOR counts before FORCE_COLOR, as in Python."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return is_terminal and environ.get("TERM") != "dumb"
