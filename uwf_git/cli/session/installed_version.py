"""The version of the installed package; importlib.metadata costs 30 ms, so import this late."""

from importlib.metadata import PackageNotFoundError, version


def installed_version(distribution: str = "uwf") -> str:
    """Return the version of *distribution*, or "unknown" in a source tree that is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"
