"""Some forged splits, branches and joins: verify finds each; test_hostile_flows.py has them all."""

from pathlib import Path

import pytest
from interop.commits import forge, uwf
from interop.honest_flows import Told, tell

SOME = (
    "join: parents swapped",
    "join: branch of another thread",
    "join: a branch before its end",
    "join: state",
    "join: twice",
    "split: another id",
    "split: twice",
    "start node: prompt",
    "start: before the split",
    "branch: end without steps",
    "thread: ends while it is split",
    "refs: branches in each other's place",
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Return a store that uwf alone has written."""
    return tell(tmp_path_factory.mktemp("told"), "parallel")


@pytest.mark.parametrize("name", SOME)
def test_what_was_forged_is_found(told: Told, tmp_path: Path, name: str) -> None:
    assert uwf(forge(name, told, tmp_path), "verify").status == 5
