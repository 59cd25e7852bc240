import re
import sys
from collections.abc import Callable

import pytest
from cli.ran import Ran
from cli.tables import check_command, entries

from uwf_git.cli.app.lazy_group import LazyCommand, LazyGroup
from uwf_git.cli.uwf import UWF, main

ENTRIES = dict(entries(UWF, "uwf"))


@pytest.mark.parametrize("path", ENTRIES)
def test_command_is_what_its_table_says_and_has_a_whole_help_page(path: str) -> None:
    check_command(path, ENTRIES[path])


def test_groups_have_the_verbs_of_the_design() -> None:
    assert [path.removeprefix("uwf ") for path in ENTRIES] == [
        "init",
        *("workflow", "workflow put", "workflow show", "workflow graph"),
        "workflow list",
        *("workflow history", "workflow rollback", "workflow remove", "workflow validate"),
        *("workflow draft", "workflow judge"),
        "thread",
        *("thread start", "thread step", "thread run", "thread wait"),
        *("thread show", "thread graph", "thread list", "thread read", "thread report"),
        *("thread files", "thread logs"),
        "thread diff",
        *("thread context", "thread answer", "thread pause", "thread resume", "thread retry"),
        *(
            "thread poke",
            "thread restore",
            "thread take",
            "thread patch",
            "thread amend",
            "thread append",
            "thread fork",
        ),
        *("thread kill", "thread rm"),
        *("run", "drive", "work", "ps", "ui"),
        *(
            "plan",
            "plan run",
            "plan resume",
            "plan status",
            "plan plans",
            "plan clean",
            "plan plugin",
        ),
        *("events", "search", "watch"),
        *("verify", "gc", "push", "fetch", "clone"),
        *("remote", "remote add", "remote list", "remote remove", "remote repair"),
        "setup",
        *("agent", "agent list", "agent check", "agent trust", "agent untrust", "agent trusted"),
        "mcp",
        *("config", "config get", "config set", "config list"),
        "completion",
        "hook",
    ]


def test_commands_are_named_after_their_verbs() -> None:
    for entry in [e for e in ENTRIES.values() if isinstance(e, LazyCommand)]:
        _, *rooms, verb = next(path for path, each in ENTRIES.items() if each is entry).split()

        # It drives threads, so it lies above the rooms of both, beside `uwf run`.
        room = ".".join(["uwf_git.cli", *rooms]) if verb != "draft" else "uwf_git.cli"
        alone = f"{room}.{verb}:command"
        assert entry.target == alone or re.fullmatch(
            rf"{room}(\.\w+)?:{verb}_command", entry.target
        )


def test_help_names_every_command_of_the_group(ran: Callable[..., Ran]) -> None:
    done = ran("uwf_git", "--help")

    assert (done.status, done.err) == (0, "")
    for name, entry in UWF.table.items():
        assert (f"\n  {name} " in done.out) is not entry.hidden
        assert (entry.summary in done.out) is not entry.hidden


@pytest.mark.parametrize("words", [["--help"], ["thread", "--help"], ["-h"], ["thread", "nope"]])
def test_no_command_and_no_heavy_library_is_imported_to_tell_of_them(
    words: list[str], ran: Callable[..., Ran]
) -> None:
    loaded = ran("uwf_git", *words, env={"PYTHONPROFILEIMPORTTIME": "1"}).err
    modules = {line.rpartition("|")[2].strip() for line in loaded.splitlines() if "|" in line}

    assert "uwf_git.cli.app.lazy_group" in modules
    heavy = {"dulwich", "importlib.metadata", "json", "jsonschema", "ulid", "unicodedata", "yaml"}
    commands = {entry.module for entry in ENTRIES.values() if isinstance(entry, LazyCommand)}
    assert modules & (heavy | commands) == set()


def test_version_is_reported(ran: Callable[..., Ran]) -> None:
    assert ran("uwf_git", "--version").out.startswith("uwf ")


def test_program_alone_is_refused(ran: Callable[..., Ran]) -> None:
    done = ran("uwf_git")

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: uwf needs a command\nhint: one of init, workflow, thread")


def test_main_takes_the_words_of_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["uwf", "thread", "stpe"])

    assert main() == 2
    assert "did you mean `uwf thread step`" in capsys.readouterr().err


def test_groups_lie_in_the_root() -> None:
    groups = [path for path, entry in ENTRIES.items() if isinstance(entry, LazyGroup)]

    assert [group.removeprefix("uwf ") for group in groups] == [
        *("workflow", "thread", "plan", "remote", "agent", "config")
    ]
