"""Writers and uniters that are killed, readers and git's packers beside: nothing is lost."""

import pytest
from conftest import Draws
from store.conftest import Git
from store.small_packs import packs_in
from store.uniting import Work, check_whole, git_by, run_together

from uwf_git.store.store import Store
from uwf_git.store.tidy import remove_stale_packs, unite_packs

BESIDE: dict[str, Work | None] = {
    "nobody": None,
    "git gc": git_by("gc", "--quiet"),
    "git gc --prune=now": git_by("gc", "--quiet", "--prune=now"),
    "git gc --aggressive": git_by("gc", "--quiet", "--aggressive"),
    "git repack -ad": git_by("repack", "-adq"),
    "git repack -adk": git_by("repack", "-adkq"),
    "git repack -Ad": git_by("repack", "-Adq"),
    "git repack --geometric": git_by("repack", "--geometric=2", "-dq"),
    "git maintenance": git_by(
        "maintenance",
        "run",
        "--quiet",
        *(f"--task={task}" for task in ("gc", "loose-objects", "incremental-repack", "pack-refs")),
    ),
}


@pytest.mark.parametrize("held_back", [False, True], ids=["", "held back"])
@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE.keys())
def test_nothing_told_is_lost_and_no_reader_fails(
    beside: Work | None, store: Store, git: Git, draws: Draws, *, held_back: bool
) -> None:
    run_together(store, draws.chance, draws.rounds(5), held_back=held_back, beside=beside)
    check_whole(store, git)
    # Nobody is at work any more: what is left is united or swept.
    remove_stale_packs(store)
    unite_packs(store)
    assert len(packs_in(store)) < 50
