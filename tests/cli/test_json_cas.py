import sys

import pytest
from cli.tables import check_command, entries

from uwf_git.cli.app.lazy_group import LazyCommand
from uwf_git.cli.json_cas import JSON_CAS, main

ENTRIES = dict(entries(JSON_CAS, "json-cas"))


@pytest.mark.parametrize("path", ENTRIES)
def test_command_is_what_its_table_says_and_has_a_whole_help_page(path: str) -> None:
    check_command(path, ENTRIES[path])


def test_groups_have_the_verbs_of_the_design() -> None:
    assert " ".join(JSON_CAS.table) == (
        "init bootstrap schema put get has hash cat refs walk verify"
    )
    assert [path for path in ENTRIES if path.startswith("json-cas schema ")] == [
        f"json-cas schema {verb}" for verb in ("put", "get", "list", "validate")
    ]


@pytest.mark.parametrize("entry", [e for e in ENTRIES.values() if isinstance(e, LazyCommand)])
def test_commands_are_named_after_their_verbs(entry: LazyCommand) -> None:
    path = next(path for path, each in ENTRIES.items() if each is entry)

    _, _, name = entry.target.removeprefix("uwf_git.cli.cas.").partition(":")
    assert name == f"{'_'.join(path.split()[1:])}_command"


def test_main_takes_the_words_of_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["json-cas", "schema"])

    assert main() == 2
    assert capsys.readouterr().err == (
        "error: json-cas schema needs a command\n"
        "hint: one of put, get, list, validate; `json-cas schema --help` says what they do\n"
    )


def test_version_names_the_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["json-cas", "--version"])

    assert main() == 0
    assert capsys.readouterr().out.startswith("json-cas ")
