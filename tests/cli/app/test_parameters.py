"""`--agent`: a command, settings, or a file with either."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from cli.program import Ran, Uwf
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.cli.app.parameters import (
    INPUT,
    Input,
    LimitWords,
    limit_options,
    no_prompt,
    not_text,
    parse_json_text,
    read_agent_option,
    read_json_input,
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

    with refuses("input-unreadable", match=reason, status=1) as refused:
        Input(f"{tmp_path}/{name}").read_bytes()

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
    with refuses("no-prompt", match=problem, status=2) as refused:
        read_prompt(text, file)

    assert "--prompt-file FILE" in str(refused.value.hint)


def test_word_that_is_no_text_is_refused_with_the_place() -> None:
    assert text_argument("é", "the prompt") == "é"
    with refuses("not-text", match=r"the prompt is not UTF-8 text \(byte 2\)"):
        text_argument("é\udcff", "the prompt")


@pytest.mark.parametrize("error", [not_text("a", offset=1), no_prompt("a")])
def test_every_refusal_has_a_hint(error: UwfError) -> None:
    assert error.hint


@pytest.mark.parametrize("text", ["a", "b=日本", '{"command": "@x"}', "env X=@file y", "a@b", "@"])
def test_value_that_names_no_file_is_given_back(text: str) -> None:
    assert read_agent_option(text, {}) == text


def test_file_is_replaced_by_its_settings(uwf: Uwf) -> None:
    file = uwf.file("command: uwf-x\nenv: {LANG: C}\n", name="agent=1.yaml")
    settings = {"command": "uwf-x", "env": {"LANG": "C"}}

    assert json.loads(read_agent_option(f"@{file}", {})) == settings
    role, _, given = read_agent_option(f"writer=@{file}", {}).partition("=")
    assert (role, json.loads(given)) == ("writer", settings)
    plain = uwf.file("uwf-x --fast\n", name="plain.yaml")
    assert json.loads(read_agent_option(f"@{plain}", {})) == {"command": "uwf-x --fast"}


def test_secret_that_a_shell_has_put_in_is_told(uwf: Uwf) -> None:
    environ = {**uwf.session.environ, "API_KEY": "Kq83ndJw93ndhW71xx"}
    agent = f"{uwf.agent()} --key {environ['API_KEY']}"
    uwf.begun()

    ran = uwf("thread", "start", "demo", "-p", "x", "--agent", agent, environ=environ)

    ran.says(0, "warning: --agent has the value of API_KEY in it")
    assert """--agent 'uwf-shell "… $API_KEY …"'""" in ran.err
    assert environ["API_KEY"] not in ran.err
    assert "warning" not in uwf("thread", "start", "demo", "-p", "x", "--agent", agent).err
    key = "sk-ant-api03-abcdefghijk1234567890abcdefghijkAAAABBBBCCCC"
    ran = uwf("thread", "start", "demo", "-p", "x", "--agent", f"env KEY={key} {agent}")
    ran.says(0, "warning: --agent has what looks like a key in it")


def test_what_cannot_be_stored_is_refused(uwf: Uwf) -> None:
    with refuses("not-text"):
        read_agent_option("\udcff", {})
    with refuses("input-unreadable"):
        read_agent_option("writer=@nowhere.yaml", {})
    with refuses("bad-agent", match=r"bad\.yaml is no agent: timeout"):
        read_agent_option(f"@{uwf.file('timeout: -1', name='bad.yaml')}", {})


# Limits as people type them.


@click.command()
@limit_options
def tell(limits: dict[str, Any]) -> None:
    """Print the limits."""
    click.echo(json.dumps(limits))


def test_limit_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    for words, limits in [
        ("", {}),
        ("--max-steps 3", {"maxSteps": 3}),
        ("--max-rounds 3", {"maxSteps": 3}),
        ("--max-steps none", {"maxSteps": None}),
        ("--no-max-steps", {"maxSteps": None}),
        ("--max-execution-time 90", {"maxExecutionTime": 90_000}),
        ("--max-execution-time 1.5", {"maxExecutionTime": 1500}),
        ("--max-execution-time 90s", {"maxExecutionTime": 90_000}),
        ("--max-execution-time 10m", {"maxExecutionTime": 600_000}),
        ("--max-execution-time 2h", {"maxExecutionTime": 7_200_000}),
        ("--max-execution-time 0.5d", {"maxExecutionTime": 43_200_000}),
        ("--max-execution-time 1w", {"maxExecutionTime": 604_800_000}),
        ("--no-max-execution-time", {"maxExecutionTime": None}),
        ("--max-tokens 9007199254740991", {"maxTokens": 9007199254740991}),
        ("--max-cost 0.25", {"maxCost": 0.25}),
        ("--max-cost none --no-max-tokens", {"maxTokens": None, "maxCost": None}),
        ("--max-steps 3 --max-steps 4", {"maxSteps": 4}),
    ]:
        tell.main(words.split(), standalone_mode=False)
        assert json.loads(capsys.readouterr().out) == limits


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--max-steps", ["0", "-1", "1.5", "many", "", "9007199254740992", "None", "٣"]),
        ("--max-execution-time", ["0", "0.0001", "-1", "1y", "10 m", "1e3", "366d", "1h30m", "m"]),
        ("--max-tokens", ["0", "1k", "1_000", "0x10"]),
        ("--max-cost", ["0", "0.0000001", "-1", "$5", "1e3", "nan", "inf", "9" * 400]),
    ],
)
def test_invalid_limit_is_reported_with_a_valid_form(option: str, values: list[str]) -> None:
    for value in values:
        with pytest.raises(click.BadParameter, match=r" is not .*; "):
            tell.main([f"{option}={value}"], standalone_mode=False)


def test_limit_is_not_set_and_taken_away_at_once() -> None:
    with pytest.raises(click.UsageError, match="--max-cost and --no-max-cost exclude each other"):
        tell.main(["--max-cost", "1", "--no-max-cost"], standalone_mode=False)


@given(st.integers(1, 365 * 24 * 3600))
def test_seconds_are_kept_as_milliseconds(seconds: int) -> None:
    assert LimitWords("maxExecutionTime").convert(str(seconds), None, None) == seconds * 1000


WHOLE = st.integers(-(2**53), 2**53)
FINITE = st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    FINITE | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(VALUES)
def test_json_is_read_as_it_was_written(value: Any) -> None:
    assert parse_json_text(json.dumps(value), "it") == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expecting value (line 1, column 1)"),
        ('{\n  "a": }', "expecting value (line 2, column 8)"),
        ("[1] [2]", "there is more text after the value on line 1"),
        ("[-Infinity]", "-Infinity is a number in JavaScript only"),
        ("1e999", "the number 1e999 is too large"),
    ],
)
def test_invalid_json_is_refused_with_the_place(text: str, problem: str) -> None:
    with refuses("not-json", status=2) as refused:
        parse_json_text(text, "the state")

    assert refused.value.message.startswith("the state is not JSON: ")
    assert problem in refused.value.message
    assert len(refused.value.message) < 200


def test_file_is_read_and_named_in_errors(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text('\ufeff{"a": 1}')
    bad.write_text("{")

    assert read_json_input(Input(str(good))) == {"a": 1}
    with refuses("not-json", match=r"bad\.json is not JSON"):
        read_json_input(Input(str(bad)))


def test_dash_is_standard_input_json(ran: Callable[..., Ran]) -> None:
    assert ran("cli.demo", "show", "-", fed=b' {"a": [1, 2]} \n') == Ran(0, '{"a":[1,2]}\n', "")
    assert ran("cli.demo", "show", "-", fed=b"{").err.startswith(
        "error: standard input is not JSON: expecting property name"
    )
