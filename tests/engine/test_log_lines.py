"""The logs are those of node 20, Python 3.11, Java 17, Ruby 3.1 and Rust 1.75, shortened."""

import pytest

from uwf_git.model.text import find_error_line, find_last_output, find_outputs, write_section


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
