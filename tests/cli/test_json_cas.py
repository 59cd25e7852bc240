import sys

import pytest
from cli.program import check_command, entries

from uwf_git.cli.app.lazy_group import LazyCommand
from uwf_git.cli.cas import JSON_CAS, main

ENTRIES = dict(entries(JSON_CAS, "json-cas"))


@pytest.mark.parametrize("path", ENTRIES)
def test_command_is_what_its_table_says_and_has_a_whole_help_page(path: str) -> None:
    check_command(path, ENTRIES[path])


@pytest.mark.parametrize("entry", [e for e in ENTRIES.values() if isinstance(e, LazyCommand)])
def test_commands_are_named_after_their_verbs(entry: LazyCommand) -> None:
    path = next(path for path, each in ENTRIES.items() if each is entry)

    _, _, name = entry.target.removeprefix("uwf_git.cli.cas.").partition(":")
    assert name == f"{'_'.join(path.split()[1:])}_command"


def test_version_names_the_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["json-cas", "--version"])

    assert main() == 0
    assert capsys.readouterr().out.startswith("json-cas ")
