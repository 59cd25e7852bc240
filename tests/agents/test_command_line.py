import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from agents.conftest import Program
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases

from uwf_git.agents import command_line
from uwf_git.agents.command_line import (
    AgentReply,
    BadJson,
    BadReply,
    ProgramMissing,
    agent_name,
    build_argv,
    build_search_path,
    on_one_line,
    parse_reply,
    parse_strict_json,
    parse_strict_json_at,
    resolve_program,
    show_beginning,
    split_command,
)
from uwf_git.model.node import canonical

THREAD = "01J7K9M2XNPQR5VWBCDF8G3H4T"

NO_WORD = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.lists(NO_WORD, min_size=1).filter(lambda words: bool(words[0])))
def test_quoted_words_come_back(words: list[str]) -> None:
    assert split_command(shlex.join(words)) == tuple(words)


def test_flags_name_thread_and_role() -> None:
    argv = build_argv("uwf-x", protocol="flags", thread=THREAD, role="front end")

    assert argv == ("uwf-x", "-t", THREAD, "-r", "front end")


def test_path_of_a_program_is_seen_from_the_work_directory(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(program("true"))

    assert resolve_program(f"./{file.name}", path="", workdir=str(tmp_path)) == str(file)
    assert resolve_program(str(file), path="", workdir="/") == str(file)
    monkeypatch.chdir(tmp_path)
    assert resolve_program(f"./{file.name}", path="", workdir=".") == str(file)
    assert resolve_program(file.name, path="", workdir=".") == str(file)


@pytest.mark.parametrize(
    ("packages", "is_beside"),
    [(".", True), ("lib/python3.11/site-packages", True), ("a/b/checkout", False)],
)
def test_programs_of_uwf_are_found_beside_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packages: str, *, is_beside: bool
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/uwf-shell").touch(0o755)
    module = tmp_path / packages / "uwf_git/agents/command_line.py"
    monkeypatch.setattr(command_line, "__file__", str(module))

    path = build_search_path("/usr/bin")

    assert path.startswith("/usr/bin:")
    assert path.endswith(f":{tmp_path / 'bin'}") == is_beside
    assert build_search_path(path) == path


def test_file_that_is_not_executable_is_reported(program: Program) -> None:
    file = Path(program("true"))
    file.chmod(0o644)

    with pytest.raises(ProgramMissing, match="may not be executed") as caught:
        resolve_program(str(file), path="", workdir="/")
    assert caught.value.hint == f"chmod +x {file}"

    with pytest.raises(ProgramMissing, match="is not on the PATH"):
        resolve_program(file.name, path=str(file.parent), workdir="/")


def test_directory_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(ProgramMissing, match="is a directory"):
        resolve_program(str(tmp_path), path="", workdir="/")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("#!/nowhere/bun", "'/nowhere/bun'"),
        ("#! \t/nowhere/bun\t--fast", "'/nowhere/bun'"),
        ("#!/bin/sh\r", r"'/bin/sh\\r'"),
    ],
)
def test_script_whose_interpreter_is_missing_is_reported(
    program: Program, line: str, told: str
) -> None:
    script = program(f"{line}\n")

    with pytest.raises(ProgramMissing, match=f"is a script for {told}, which") as caught:
        resolve_program(script, path="", workdir="/")

    assert "install" in str(caught.value.hint)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_program_that_cannot_be_read_may_still_run(program: Program) -> None:
    file = Path(program("true"))
    file.chmod(0o111)

    assert resolve_program(str(file), path="", workdir="/") == str(file)


# What agents print, and what is read of it, as written down, and laws of any output.

MADE_UP = Path(__file__).parent / "made_up"

JSON_LIKE = st.text('{}[]":,0eé\\u\n\0\x1b ameta').map(lambda text: f"{{{text}".encode())
FRONT_LIKE = st.text("-:'\"\n \x1b\x85é&*!{}[]|a").map(lambda text: f"---\n{text}\n---\n".encode())


def positional(stdout: bytes | str) -> AgentReply:
    raw = stdout if isinstance(stdout, bytes) else stdout.encode()
    return parse_reply(raw, protocol="positional")


def refused(stdout: bytes | str) -> BadReply:
    with pytest.raises(BadReply) as caught:
        positional(stdout)
    return caught.value


def test_outputs_are_read_as_ever(golden: Callable[[str, str], None]) -> None:
    told: list[str] = []
    for case, outputs in json.loads((MADE_UP / "replies.json").read_text()).items():
        told.append(f"{case}\n")
        for given_output in outputs:
            told += [f"    {json.dumps(given_output)}\n", *tell(given_output)]

    golden("replies.txt", "".join(told))


def tell(given_output: Mapping[str, Any]) -> Iterator[str]:
    stdout = given_output.get("text", "").encode() + given_output.get("bytes", "").encode("latin-1")
    protocol = given_output.get("protocol", "positional")
    try:
        reply = parse_reply(stdout, protocol=protocol, is_free=given_output.get("is_free", False))
    except BadReply as error:
        yield f"        {error.kind}: {error.message}\n        hint: {error.hint}\n"
        yield f"        exit status {error.exit_status}, facts: {error.facts}\n"
        return
    parts = {name: part for name, part in reply._asdict().items() if part is not None}
    yield f"        {parts}\n"


@given(st.binary())
def test_text_after_front_matter_is_kept_byte_by_byte(text: bytes) -> None:
    reply = positional(b"---\nok: true\n---\n" + text)

    assert reply.content == text.decode(errors="replace")
    assert (reply.raw is None) == (reply.content.encode() == text)


@pytest.mark.parametrize(
    ("stdout", "kind", "problem"),
    [
        ('{"meta": ' + "[" * 100_000, "bad-json", "nested too deeply"),
        ('{"meta": ' + "9" * 5000 + "}", "bad-json", "too many digits"),
        ("---\nn: 1" + "0" * 400 + "\n---\n", "bad-front-matter", ""),
    ],
)
def test_output_without_measure_is_refused(stdout: str, kind: str, problem: str) -> None:
    error = refused(stdout)

    assert error.kind == error.facts["kind"] == kind
    assert problem in error.message


@pytest.mark.parametrize("protocol", ["positional", "flags"])
@given(stdout=st.binary() | st.text().map(str.encode) | JSON_LIKE | FRONT_LIKE)
def test_any_output_is_an_answer_or_a_clean_complaint(
    protocol: Literal["positional", "flags"], stdout: bytes
) -> None:
    message = ""
    try:
        parse_reply(stdout, protocol=protocol)
    except BadReply as error:
        message = error.message
    assert message.isprintable()


@given(st.text())
def test_line_is_safe_to_print_anywhere(text: str) -> None:
    assert on_one_line(text).isprintable()
    assert on_one_line(on_one_line(text)) == on_one_line(text)


@given(st.text(), st.integers(1, 100))
def test_beginning_is_short(text: str, limit: int) -> None:
    assert len(show_beginning(text, limit=limit)) <= limit + 1
    assert show_beginning("x" + " " * 100, limit=13) == "x…"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
)


@given(VALUES)
def test_any_value_comes_back_in_the_form_that_nodes_hold(value: Any) -> None:
    assert parse_strict_json(json.dumps(value)) == canonical(value)


@given(st.text())
def test_any_text_gives_a_value_or_one_line_of_complaint(text: str) -> None:
    message = ""
    try:
        parse_strict_json(text)
    except BadJson as error:
        message = error.message
    assert "\n" not in message


def test_value_is_read_where_it_stands() -> None:
    assert parse_strict_json_at('so: {"a": [1]} and more', 3) == ({"a": [1]}, 14)


def test_commands_and_json_that_are_refused(golden: Callable[[str, str], None]) -> None:
    answers = {
        "split_command": split_command,
        "agent_name": agent_name,
        "parse_strict_json": parse_strict_json,
    }
    golden("commands.txt", tell_cases(MADE_UP / "commands.json", answers))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        # Python 3.13 says more of this one.
        ('{\n"a": 1,\n}', r"line 3, column 1|line 2, column 7"),
        ('{"n": 1' + "0" * 400 + "}", r"the value at \$\.n is a number no 64-bit float can hold"),
        ('{"n": ' + "1" * 5000 + "}", "a number has too many digits"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ("[" * 600 + "]" * 600, "nested more than 500 levels"),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
    ids=["comma", "float", "digits", "lists", "levels", "objects"],
)
def test_value_that_no_node_can_hold_is_refused(text: str, problem: str) -> None:
    with pytest.raises(BadJson, match=problem):
        parse_strict_json(text)
