import os
import subprocess
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

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

ANY_TEXT = st.text(st.characters())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain", "plain"),
        ("日本 é 👩\u200d💻", "日本 é 👩\u200d💻"),
        ("\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("a\tb\nc\rd", "a\\tb\\nc\\rd"),
        ("\u202etxt.exe\u2066", "\\u202etxt.exe\\u2066"),
        ("\udcff", "\\udcff"),
        ("\ufffe\uffff", "\\ufffe\\uffff"),
        ("a\u2028b\x85c", "a\\u2028b\\x85c"),
    ],
)
def test_terminal_control_is_spelled_out(text: str, line: str) -> None:
    assert visible_line(text) == line


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


@pytest.mark.parametrize(
    ("duration_ms", "told"),
    [
        (0, "0.0 s"),
        (1_500, "1.5 s"),
        (60_000, "1 min 00 s"),
        (65_999, "1 min 05 s"),
        (3_599_999, "59 min 59 s"),
        (5_400_000, "1 h 30 min"),
        (90_000_000, "25 h 00 min"),
    ],
)
def test_duration_is_reported_as_people_say_it(duration_ms: int, told: str) -> None:
    assert render_duration(duration_ms) == told


# The logs are those of node 20, Python 3.11, Java 17, Ruby 3.1 and Rust 1.75, shortened.


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


NODE = """working on it
/home/ada/agent.js:2
function f(){ throw new Error("no plan found"); }
              ^

Error: no plan found
    at f (/home/ada/agent.js:2:21)
    at node:internal/main/run_main_module:28:49

Node.js v20.20.2
"""

NODE_WITH_FIELDS = """node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module './plan'
Require stack:
- /home/ada/agent.js
    at Function.executeUserEntryPoint [as runMain] (node:internal/modules/run_main:164:12) {
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/home/ada/agent.js' ]
}

Node.js v20.20.2
"""

NODE_THROWS_TEXT = """/home/ada/agent.js:1
throw "no plan"
^
no plan
(Use `node --trace-uncaught ...` to show where the exception was thrown)

Node.js v20.20.2
"""

NODE_SYNTAX = """/home/ada/agent.js:1
let let = 1
    ^^^

SyntaxError: let is disallowed as a lexically bound name
    at wrapSafe (node:internal/modules/cjs/loader:1464:18)

Node.js v20.20.2
"""

PYTHON = """Traceback (most recent call last):
  File "/home/ada/agent.py", line 1, in <module>
    raise ValueError("no plan found")
ValueError: no plan found
"""

JAVA = """Exception in thread "main" java.lang.IllegalStateException: no plan found
\tat Agent.plan(Agent.java:7)
\tat Agent.main(Agent.java:3)
\t... 12 more
"""

RUBY = """agent.rb:1:in `plan': no plan found (RuntimeError)
\tfrom agent.rb:3:in `<main>'
"""

RUST = """thread 'main' panicked at src/main.rs:2:5:
no plan found
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (NODE, "Error: no plan found"),
        (NODE_WITH_FIELDS, "Error: Cannot find module './plan'"),
        (NODE_THROWS_TEXT, "no plan"),
        (NODE_SYNTAX, "SyntaxError: let is disallowed as a lexically bound name"),
        (PYTHON, "ValueError: no plan found"),
        (JAVA, 'Exception in thread "main" java.lang.IllegalStateException: no plan found'),
        (RUBY, "agent.rb:1:in `plan': no plan found (RuntimeError)"),
        (RUST, "no plan found"),
    ],
)
def test_crash_is_told_by_its_error(log: str, line: str) -> None:
    assert find_error_line(log) == line


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("", ""),
        ("\n \n", ""),
        ("one\ntwo\n", "two"),
        ("error: no key\nhint: set it\n", "no key"),
        ("Node.js v20 is needed\n", "Node.js v20 is needed"),
        ("out of memory\nNode.js v20.20.2\n", "out of memory"),
        ("looking at it\nfailed at noon\n", "failed at noon"),
        # Others mark places as node does.
        (
            "a.c:1:5: error: no plan\n    ^\n1 error\nmake: *** [all] Error 1\n",
            "make: *** [all] Error 1",
        ),
    ],
)
def test_otherwise_it_is_the_last_line(log: str, line: str) -> None:
    assert find_error_line(log) == line


@pytest.mark.parametrize("path", ["a b", "/wd\udce9'\\/a\nb", "字\x1b"])
def test_path_that_cannot_be_shown_is_a_word_for_a_shell(path: str) -> None:
    word = quote_path(path)

    assert visible_line(word) == word
    said = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert said.stdout == os.fsencode(path)
