import json
import os
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from cli.ran import Ran
from refusing import refuses

from uwf_git.cli.app.parameters import (
    INPUT,
    Input,
    no_prompt,
    not_text,
    read_prompt,
    text_argument,
)
from uwf_git.errors import UwfError

Demo = Callable[..., Ran]


@pytest.fixture
def written(tmp_path: Path) -> Callable[[bytes], Input]:
    """Write bytes to a file and name it."""

    def write(content: bytes) -> Input:
        path = tmp_path / "input.txt"
        path.write_bytes(content)
        return Input(str(path))

    return write


def test_file_is_read_byte_for_byte(written: Callable[[bytes], Input]) -> None:
    assert written(b"a\r\n\xff\x00").read_bytes() == b"a\r\n\xff\x00"


def test_text_is_read_without_the_mark_in_front(written: Callable[[bytes], Input]) -> None:
    assert written(b"\xef\xbb\xbfa\r\n\xc3\xa9").read_text() == "a\r\né"


def test_file_may_be_as_large_as_the_limit(written: Callable[[bytes], Input]) -> None:
    assert written(b"abc").read_bytes(limit_bytes=3) == b"abc"
    with refuses("input-too-large", match=r"input.txt is larger than 2 bytes"):
        written(b"abc").read_bytes(limit_bytes=2)


def test_endless_file_is_not_read_to_its_end() -> None:
    with refuses("input-too-large"):
        Input("/dev/zero").read_bytes()


def test_bytes_that_are_no_text_are_refused_with_their_place(
    written: Callable[[bytes], Input],
) -> None:
    with refuses("not-text", match=r"input.txt is not UTF-8 text \(byte 1\)"):
        written(b"a\xff").read_text()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (".", "Is a directory"),
        ("missing", "No such file or directory"),
        ("file/below", "Not a directory"),
        ("nul\0", "null"),
        ("x" * 5000, "File name too long"),
    ],
)
def test_file_that_cannot_be_read_is_refused_with_the_reason(
    name: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()

    with refuses("input-unreadable", match=reason) as refused:
        Input(f"{tmp_path}/{name}").read_bytes()

    assert refused.value.exit_status == 1
    assert name in refused.value.message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_that_is_not_ours_is_refused(written: Callable[[bytes], Input]) -> None:
    source = written(b"x")
    Path(source.path).chmod(0)

    with refuses("input-unreadable", match="Permission denied"):
        source.read_bytes()


def test_dash_is_standard_input(ran: Demo) -> None:
    assert ran("cli.demo", "read", "-", fed="é\n".encode()).out == (
        '{"name":"standard input","text":"é\\n"}\n'
    )


def test_standard_input_has_limits_too(ran: Demo) -> None:
    done = ran("cli.demo", "read", "-", fed=b"x" * 101)

    assert done.status == 1
    assert done.err.startswith("error: standard input is larger than 100 bytes\nhint: ")


def test_standard_input_that_is_closed_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)

    assert Input("-").read_bytes() == b""


def test_file_is_not_read_while_words_are_parsed() -> None:
    assert INPUT.convert("missing", None, None) == Input("missing")
    assert INPUT.convert(Input("a"), None, None) == Input("a")


def test_empty_name_is_wrong_usage(demo: Demo) -> None:
    ran = demo("read", "")

    assert (ran.status, ran.out) == (2, "")
    assert "it needs a path, or `-`" in ran.err


def test_shell_is_asked_to_complete_file_names() -> None:
    command = click.Command("x", params=[click.Argument(["file"], type=INPUT)])

    with click.Context(command) as context:
        (item,) = INPUT.shell_complete(context, command.params[0], "a")

    assert item.type == "file"


@pytest.mark.parametrize(
    ("words", "prompt"),
    [
        (["-p", "fix it"], "fix it"),
        (["--prompt", " fix\nit \n"], " fix\nit "),
        (["-p", "-"], "from a pipe"),
        (["--prompt-file", "-"], "from a pipe"),
        (["--prompt-file", "prompt.txt"], "from a\n\nfile"),
    ],
)
def test_prompt_comes_from_words_a_file_or_standard_input(
    words: list[str], prompt: str, ran: Demo
) -> None:
    Path("prompt.txt").write_text("from a\n\nfile\r\n\n")

    done = ran("cli.demo", "ask", *words, fed=b"from a pipe\n")

    assert (done.status, done.err) == (0, "")
    assert json.loads(done.out) == {"prompt": prompt}


@pytest.mark.parametrize(
    ("text", "file", "problem"),
    [
        ("a", Input("b"), "the prompt is given twice"),
        ("", None, "the prompt is empty"),
        (" \n", None, "the prompt is empty"),
        (None, Input(os.devnull), "the prompt is empty"),
    ],
)
def test_invalid_prompt_is_wrong_usage(text: str | None, file: Input | None, problem: str) -> None:
    with refuses("no-prompt", match=problem) as refused:
        read_prompt(text, file)

    assert refused.value.exit_status == 2
    assert "--prompt-file FILE" in str(refused.value.hint)


def test_prompt_may_be_left_out() -> None:
    assert read_prompt(None, None) is None


def test_prompt_options_are_in_the_help(demo: Demo) -> None:
    page = demo("ask", "--help").out

    assert "-p, --prompt TEXT" in page
    assert "--prompt-file FILE" in page


def test_word_that_is_no_text_is_refused_with_the_place() -> None:
    assert text_argument("é", "the prompt") == "é"
    with refuses("not-text", match=r"the prompt is not UTF-8 text \(byte 2\)"):
        text_argument("é\udcff", "the prompt")


@pytest.mark.parametrize(
    "error",
    [not_text("a", offset=1), no_prompt("a")],
)
def test_every_refusal_has_a_hint(error: UwfError) -> None:
    assert error.hint
