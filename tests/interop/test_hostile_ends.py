"""Other ends of branches of every kind of container, pushed by git to a hub with its hooks."""

from pathlib import Path

import pytest
from interop.commits import uwf
from interop.honest_flows import git, tell
from interop.hub import make_hub
from interop.test_other_ends import make_ends, new_hub, push, rows

KINDS = [("any", "killed"), ("map", "other"), ("workflow", "other"), ("graph", "killed")]
REFUSED = "x ty; tx y; tx. y; tx+y; split begun tx y"


@pytest.mark.parametrize(("name", "how"), KINDS)
def test_a_hub_takes_one_end_of_a_branch(tmp_path: Path, name: str, how: str) -> None:
    ends = make_ends(tell(tmp_path, name), tmp_path, how)
    for row in rows(REFUSED):
        hub = new_hub(ends)
        *before, last = row.split()
        assert [push(ends, hub, each) for each in before] == [[]] * len(before), row
        assert push(ends, hub, last), row
    made = make_hub(tmp_path)
    specs = {word: f"{oid}:{ref}" for word, (ref, oid) in ends.refs.items()}

    git("push", "-q", str(made.path), specs["tx"], cwd=ends.path)
    refused = git("push", "-q", str(made.path), specs["y"], cwd=ends.path, check=False)
    git("push", "-q", str(made.path), specs["x"], cwd=ends.path)

    assert "pre-receive hook declined" in refused
    assert "has joined it at" in refused
    assert uwf(str(made.path), "verify").status == 0
