"""The boundary, in this process and as a process."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.demo import DEMO
from cli.program import Ran

from uwf_git.cli.app.lazy_group import run
from uwf_git.cli.session import Session

Demo = Callable[..., Ran]


def test_command_that_cannot_be_imported_is_a_bug(demo: Demo) -> None:
    assert demo("missing").status == 70
    assert demo("wrong").status == 70


def test_settings_that_cannot_be_read_are_reported_like_any_error(ran: Demo) -> None:
    assert ran("cli.demo", "say", "x", env={"UWF_TEST_NOW": "noon"}) == Ran(
        2,
        "",
        "error: UWF_TEST_NOW is 'noon', not milliseconds since 1970\n"
        "hint: unset it: only tests need it\n",
    )


def test_shell_that_completes_gets_names(demo: Demo, session: Session) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMP_WORDS", "demo s")
        patch.setenv("COMP_CWORD", "1")
        asking = session._replace(environ={"_DEMO_COMPLETE": "bash_complete"})

        assert demo(given=asking) == Ran(0, "plain,say\nplain,show\n", "")


@pytest.mark.parametrize("question", ["bash_complete", "tcsh_complete", "bash_source", "x"])
def test_shell_that_asks_wrongly_is_not_answered(
    question: str, demo: Demo, session: Session
) -> None:
    # Without COMP_WORDS click raises; the user must not see that during completion.
    assert demo(given=session._replace(environ={"_DEMO_COMPLETE": question})) == Ran(1, "", "")


@pytest.mark.parametrize("words", [["show", f'"{"x" * 100_000}"'], ["--help"]])
def test_reader_that_leaves_ends_us_silently(
    words: list[str], start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with start("cli.demo", *words, stdout=writing) as process:
        os.close(writing)
        _, err = process.communicate()

    assert (process.returncode, err) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is full")
@pytest.mark.parametrize("words", [["say", "hi"], ["--help"], ["--version"]])
def test_output_that_is_lost_is_an_error(words: list[str], ran: Demo) -> None:
    with open("/dev/full", "wb") as full:
        done = ran("cli.demo", *words, stdout=full)

    assert done.status == 1
    assert "error: standard output: No space left on device\n" in done.err
    assert "Exception" not in done.err


def test_closed_streams_are_not_reused_by_files(ran: Demo, tmp_path: Path) -> None:
    script = 'exec "$0" -m cli.demo say hi >&- 2>&- <&-'
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable], env=environment, cwd=tmp_path, check=False
    )

    assert done.returncode == 0


@pytest.mark.parametrize("words", [["wait"], ["wait", "--at-the-end"]])
def test_interrupted_process_says_so_and_nothing_else(
    words: list[str], start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    with start("cli.demo", *words) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()

    assert (process.returncode, out, err) == (130, b'"waiting"\n', b"error: interrupted\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
@pytest.mark.parametrize("form", ["json", "yaml", "text"])
def test_no_encoding_makes_printing_fail(encoding: str, form: str, ran: Demo) -> None:
    environment = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    # An argument that is no UTF-8 has half a surrogate for each such byte.
    done = ran("cli.demo", "say", "日本\udcff", "--format", form, env=environment)

    assert (done.status, done.err[:7]) == (0, "saying ")
    if form == "json":
        assert json.loads(done.out) == {"said": "日本\udcff"}
        assert ("日本" in done.out) == (encoding == "utf-8")


def test_error_is_json_if_the_environment_names_the_format(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {**session.environ, "UWF_FORMAT": "JSON"}

    run(DEMO, ["shwo"], prog="demo", environ=environ, session=session)
    named = capsys.readouterr().err
    run(DEMO, ["shwo", "--format", "text"], prog="demo", environ=environ, session=session)

    assert json.loads(named)["error"]["code"] == "no-such-command"
    assert capsys.readouterr().err.startswith("error: ")
