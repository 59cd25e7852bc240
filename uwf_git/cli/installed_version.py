"""The version of the installed package.

Owns: the only use of importlib.metadata, which costs 30 ms; imported when somebody asks.
"""

from importlib.metadata import PackageNotFoundError, version


def installed_version(distribution: str = "uwf-git") -> str:
    """Give the version of *distribution*, or "unknown" in a source tree that is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"
