"""Damaged stores, drawn by chance: what git rejects, verify reports; and no thread goes back."""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from commands.verify.damaging import DAMAGES, KINDS, damage, files_of, group_of, make_store
from commands.world import World
from conftest import Draws

from uwf_git.commands.verify.verify import verify
from uwf_git.errors import UwfError
from uwf_git.store.store import open_store
from uwf_git.store.threads.heads import get_head, list_threads

HEADS = ("refs/threads", "refs/archive")


class Judged(NamedTuple):
    """What a program says of a store."""

    complaint: str
    """Empty if nothing is wrong."""

    heads: dict[str, str]
    """The newest commit of each thread."""


def judge_by_git(path: Path) -> Judged:
    checked = _git(path, "fsck", "--strict", "--no-dangling", "--no-progress")
    listed = _git(path, "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", *HEADS)
    said = (checked.stderr + listed.stderr).splitlines(keepends=True)
    complaint = "" if checked.returncode == 0 == listed.returncode else "it fails: "
    # That a new repository has no branch yet.
    complaint += "".join(line for line in said if not line.startswith("notice: "))
    return Judged(complaint, dict(line.split() for line in listed.stdout.splitlines()))


def _git(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *words], cwd=path, capture_output=True, check=False, text=True, errors="replace"
    )


def judge_by_uwf(path: Path) -> Judged:
    heads: dict[str, str] = {}
    try:
        store = open_store(str(path))
        complaints = [each.message for each in verify(store, []).troubles]
        for archived in (False, True):
            for thread in list_threads(store, archived=archived):
                heads[thread] = get_head(store, thread).commit
    except UwfError as error:
        return Judged(f"{error.code}: {error.message}", heads)
    return Judged("; ".join(complaints), heads)


# dulwich leaves a pack that it found damaged open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_what_git_rejects_verify_reports(
    kind: str, world: World, tmp_path: Path, draws: Draws
) -> None:
    whole, copy = make_store(kind, world), tmp_path / "copy"
    before = judge_by_uwf(whole)
    assert before == judge_by_git(whole)
    assert before.complaint == ""
    names = files_of(whole)
    groups = sorted({group_of(each) for each in names})
    missed: list[str] = []
    for number in draws.rounds(short=30):
        group, how = draws.chance.choice(groups), draws.chance.choice(list(DAMAGES))
        name = draws.chance.choice([each for each in names if group_of(each) == group])
        shutil.copytree(whole, copy)
        damage(copy / name, how, draws.chance)
        git, ours = judge_by_git(copy), judge_by_uwf(copy)
        # Of a file that is gone, or a name that became another, git finds no trace either.
        has_moved = ours.heads not in (before.heads, git.heads)
        if not ours.complaint and (git.complaint or has_moved):
            missed.append(f"{number}: {name}: {how}; git: {git.complaint[:200] or git.heads}")
        shutil.rmtree(copy)
    assert not missed, "\n".join(missed)
