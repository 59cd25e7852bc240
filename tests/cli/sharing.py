"""A hub for the command line, and a second store."""

from pathlib import Path
from typing import Any

from cli.program import Uwf

from uwf_git.store.store import create_store


def make_hub(uwf: Uwf) -> str:
    """Create an empty repository, and the remote origin for it."""
    hub = create_store(str(uwf.place.parent / "hub.git")).path
    uwf.json("remote", "add", "origin", hub)
    return hub


def clone(uwf: Uwf, hub: str) -> dict[str, Any]:
    """Clone *hub*, and return a function that runs `uwf` on the clone."""
    made = uwf.json("clone", hub, "copy.git")
    assert Path(made["repo"]).is_dir()
    return {"repo": made["repo"]}
