import json
import os
import subprocess
from collections.abc import Callable

import pytest

from uwf_git.cli.output.screen import emit, note
from uwf_git.cli.session.settings import Format, Session

DOCUMENT = {"name": "é\x1b", "tags": ["a", "b"]}


@pytest.mark.parametrize(
    ("form", "printed"),
    [
        ("json", '{"name":"é\\u001b","tags":["a","b"]}\n'),
        ("yaml", 'name: "é\\u001b"\ntags:\n  - a\n  - b\n'),
        ("text", "name: é\\x1b\ntags:\n  a\n  b\n"),
    ],
)
def test_document_is_printed_in_the_format_of_the_session(
    form: Format, printed: str, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    emit(session._replace(output_format=form), DOCUMENT)

    assert capsys.readouterr() == (printed, "")


def test_json_is_pretty_on_a_terminal(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    emit(session._replace(stdout_is_tty=True), DOCUMENT)

    assert capsys.readouterr().out == json.dumps(DOCUMENT, indent=2, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(
    ("own", "printed"), [("a\x1b\nb", "a\\x1b\nb\n"), ("a\n", "a\n"), ("", "")]
)
def test_own_words_are_used_for_text_and_made_visible(
    own: str, printed: str, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    emit(session._replace(output_format="text"), DOCUMENT, text=lambda _: own)

    assert capsys.readouterr().out == printed


def test_own_words_are_for_text_only(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    emit(session, 1, text=lambda _: "own")

    assert capsys.readouterr().out == "1\n"


def test_table_is_as_wide_as_the_terminal(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = session._replace(output_format="text", stdout_is_tty=True, environ={"COLUMNS": "20"})

    emit(wide, [{"a": "x" * 99}])
    emit(wide._replace(stdout_is_tty=False), [{"a": "x" * 99}])

    assert [len(line) for line in capsys.readouterr().out.splitlines()] == [1, 20, 1, 99]


def test_nothing_is_nothing_as_text(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    emit(session._replace(output_format="text"), None)

    assert capsys.readouterr().out == ""


def test_people_are_told_that_there_is_nothing(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    text = session._replace(output_format="text")

    emit(text, [], none="nothing here")
    emit(text, [{"a": 1}], none="nothing here")
    emit(session, [], none="nothing here")

    assert capsys.readouterr() == ("A\n1\n[]\n", "nothing here\n")


def test_note_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    note("step 1\nof \x1b[31m2")

    assert capsys.readouterr() == ("", "step 1 of \\x1b[31m2\n")


@pytest.mark.parametrize(
    ("environ", "shown"),
    [({}, b"a: 1\n"), ({"UWF_THREAD_ID": "01J"}, b'{\n  "a": 1\n}\n')],
    ids=["person", "agent"],
)
def test_terminal_is_noticed(
    environ: dict[str, str], shown: bytes, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    ours, theirs = os.openpty()
    with start("cli.demo", "show", '{"a": 1}', stdout=theirs, env=environ) as process:
        os.close(theirs)
        printed = os.read(ours, 1000)
    os.close(ours)

    assert process.returncode == 0
    assert printed.replace(b"\r\n", b"\n") == shown
