"""What a command imports: start-up is most of what a person waits for."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli.program import Uwf

DEAR = {"concurrent.futures", "dulwich.object_store", "dulwich.pack", "jsonata", "jsonschema"}
DEAR |= {"logging", "rich", "shutil", "yaml"}
"""Each costs 2 ms to 60."""


def imported(uwf: Uwf, *words: str) -> set[str]:
    """Run a command in a process; return the names of all modules that it imported."""
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "uwf_git", *words],
        env={**os.environ, "UWF_REPO": str(uwf.session.repo)},
        cwd=uwf.place,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(re.findall(r"^import time:.*\| +(\S+)$", ran.stderr, re.MULTILINE))


@pytest.mark.parametrize("git_packs", [False, True])
def test_show_and_step_of_a_graph_import_little(uwf: Uwf, *, git_packs: bool) -> None:
    thread = uwf.begun(uwf.agent())
    uwf.json("thread", "step", thread)
    if git_packs:
        # Deltas need no more of dulwich than what applies them.
        subprocess.run(["git", "gc", "-q"], cwd=Path(str(uwf.session.repo)), check=True)

    assert imported(uwf, "thread", "show", thread) & DEAR == set()
    assert imported(uwf, "thread", "list") & DEAR == set()
    # A step may remove the folder of its run.
    assert imported(uwf, "thread", "step", thread) & DEAR <= {"shutil"}


def test_what_names_a_workflow_or_lists_reads_no_file_format(uwf: Uwf) -> None:
    uwf.begun(uwf.agent())

    for words in (("thread", "start", "demo", "-p", "x"), ("workflow", "list"), ("agent", "list")):
        assert imported(uwf, *words) & {"jsonata", "jsonschema", "yaml"} == set(), words
