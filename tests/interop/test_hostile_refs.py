"""A hub with refs without end: 50,000 of them, by counted processes and writes."""

from pathlib import Path
from typing import Any

import pytest
from commands.sharing import Site

from uwf_git.agents.limited_fork import run_limited
from uwf_git.commands.remote.reconcile import MOST_FAILED
from uwf_git.model.names import ThreadId

_MANY = 50_000


def test_a_fetch_of_refs_that_are_all_wrong_ends(
    sites: tuple[Site, Site, ThreadId], hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, other, thread = sites
    other.step(thread)
    other.push()
    tip = (hub / f"refs/threads/{thread}").read_text().strip()
    rows = "".join(f"{tip} refs/threads/01H{number:023}\n" for number in range(_MANY))
    (hub / "packed-refs").write_text(f"# pack-refs with: peeled fully-peeled sorted \n{rows}")
    started: list[object] = []

    def run_and_count(*args: Any, **options: Any) -> Any:
        started.append(args)
        return run_limited(*args, **options)

    monkeypatch.setattr("uwf_git.commands.remote.reconcile.run_limited", run_and_count)

    fetched = site.fetch()

    assert len(fetched.of("refused")) == _MANY
    assert len(started) < MOST_FAILED + 10
    # What is here goes on all the same.
    assert site.find(f"threads/{thread}") == tip
    assert list(site.refs("uwf/remotes/origin/threads")) == [f"uwf/remotes/origin/threads/{thread}"]
    assert not list((site.path / "uwf/locks").glob("01H*"))
