import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.program import Ran, Uwf, check_command, entries

from uwf_git.cli.app.lazy_group import LazyCommand
from uwf_git.cli.uwf import UWF, main

ENTRIES = dict(entries(UWF, "uwf"))


@pytest.mark.parametrize("path", ENTRIES)
def test_command_is_what_its_table_says_and_has_a_whole_help_page(path: str) -> None:
    check_command(path, ENTRIES[path])


def test_commands_are_named_after_their_verbs() -> None:
    for entry in [e for e in ENTRIES.values() if isinstance(e, LazyCommand)]:
        _, *rooms, verb = next(path for path, each in ENTRIES.items() if each is entry).split()

        # What drives threads lies beside `uwf run`, above the rooms of both; what reads, there.
        moved = {"draft": "uwf_git.cli", "search": "uwf_git.cli.thread"}
        room = moved.get(verb, ".".join(["uwf_git.cli", *rooms]))
        alone = f"{room}.{verb}:command"
        assert entry.target == alone or re.fullmatch(
            rf"{room}([._]\w+)?:{verb}_command", entry.target
        )


@pytest.mark.parametrize("words", [["--help"], ["thread", "--help"], ["-h"], ["thread", "nope"]])
def test_no_command_and_no_heavy_library_is_imported_to_tell_of_them(
    words: list[str], ran: Callable[..., Ran]
) -> None:
    loaded = ran("uwf_git", *words, env={"PYTHONPROFILEIMPORTTIME": "1"}).err
    modules = {line.rpartition("|")[2].strip() for line in loaded.splitlines() if "|" in line}

    assert "uwf_git.cli.app.lazy_group" in modules
    heavy = {"dulwich", "importlib.metadata", "json", "jsonschema", "ulid", "unicodedata", "yaml"}
    targets = [entry.target for entry in ENTRIES.values() if isinstance(entry, LazyCommand)]
    assert modules & (heavy | {target.partition(":")[0] for target in targets}) == set()


def test_words_are_utf_8_in_every_locale(ran: Callable[..., Ran]) -> None:
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    assert "no command grüß" in ran("uwf_git", "grüß", env=plain).err.replace("'", "")
    cas = [sys.executable, "-c", "from uwf_git.cli.cas import program; program()", "grüß"]
    done = subprocess.run(cas, env=os.environ | plain, capture_output=True, check=False)
    assert "no command grüß" in done.stderr.decode().replace("'", "")


def test_main_takes_the_words_of_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["uwf", "thread", "stpe"])

    assert main() == 2
    assert "did you mean `uwf thread step`" in capsys.readouterr().err


# What a command imports: start-up is most of what a person waits for.

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
    thread = uwf.stepped(uwf.agent())
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
