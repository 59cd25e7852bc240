import os
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases

from uwf_git.model.text import (
    find_error_line,
    find_last_output,
    find_outputs,
    quote_path,
    render_duration,
    render_time,
    visible_block,
    visible_line,
    write_section,
)

LINES = Path(__file__).parent / "made_up" / "lines.json"
ANY_TEXT = st.text(st.characters())


@given(ANY_TEXT)
def test_line_is_one_line_without_controls_that_every_stream_takes(text: str) -> None:
    line = visible_line(text)

    assert len(line.splitlines()) <= 1
    assert {unicodedata.category(character) for character in line}.isdisjoint({"Cc", "Cs"})
    assert line.encode().decode() == line


@given(ANY_TEXT)
def test_block_has_no_control_but_newline_and_tab(text: str) -> None:
    for line in visible_block(text).replace("\t", " ").split("\n"):
        assert visible_line(line) == line


@given(ANY_TEXT)
def test_what_is_visible_stays_as_it_is(text: str) -> None:
    assert visible_line(visible_line(text)) == visible_line(text)


@given(st.integers(min_value=0))
def test_every_number_that_a_node_may_hold_is_reported(time_ms: int) -> None:
    assert render_time(time_ms)


def test_output_of_the_newest_check_is_found_after_all_others() -> None:
    log = (
        b"$ make\nthe agent's own\n" + write_section("make", b"one") + write_section("lint  x", b"")
    )
    assert log == b"$ make\nthe agent's own\n\n$ make\none\n\n$ lint x\n"
    assert find_last_output(log.decode(), ("make",)) == "one\n\n$ lint x\n"
    assert find_last_output(log.decode(), ("make", "lint  x")) == ""
    assert find_last_output(log.decode(), ("other",)) == ""


def test_checks_that_printed_something_are_told_with_their_headings() -> None:
    parts = [("make", b""), ("lint  x", b"two\nlines\n"), ("count", b"3")]
    log = (
        b"$ count\nthe agent's own\n" + b"".join(write_section(*part) for part in parts)
    ).decode()
    commands = ("make", "lint  x", "count")

    assert find_outputs(log, commands) == "$ lint x\ntwo\nlines\n$ count\n3"
    assert find_outputs(log, ("make", "lint  x", "count", "never run")) == find_outputs(
        log, commands
    )
    assert find_outputs(write_section("make", b"").decode(), ("make",)) == ""
    assert find_outputs("the agent's own", commands) == ""
    assert find_outputs(log, ()) == ""


@pytest.mark.parametrize("path", ["a b", "/wd\udce9'\\/a\nb", "字\x1b"])
def test_path_that_cannot_be_shown_is_a_word_for_a_shell(path: str) -> None:
    word = quote_path(path)

    assert visible_line(word) == word
    said = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert said.stdout == os.fsencode(path)


def test_what_is_told_of_lines_and_times(golden: Callable[[str, str], None]) -> None:
    """The logs are those of node 20, Python 3.11, Java 17, Ruby 3.1 and Rust 1.75, shortened."""
    answers = {
        "visible_line": visible_line,
        "render_duration": render_duration,
        "find_error_line": find_error_line,
    }
    golden("model/lines.txt", tell_cases(LINES, answers))
