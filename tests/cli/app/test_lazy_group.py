import json
import sys
from collections.abc import Callable

import click
import pytest
from cli.demo import DEEP, DEMO
from cli.ran import Ran

from uwf_git.cli.app.lazy_group import LazyCommand, LazyGroup, run
from uwf_git.cli.session.settings import Session

Demo = Callable[..., Ran]


def test_help_shows_the_table_and_imports_nothing(
    demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "cli.demo_verbs", raising=False)

    page = demo("--help").out

    assert "cli.demo_verbs" not in sys.modules
    assert [line.split()[0] for line in page.partition("Commands:\n")[2].splitlines()[:9]] == list(
        DEMO.table
    )
    assert "Hold what is deeper\n" in page
    assert page.startswith("Usage: demo [OPTIONS] COMMAND [ARGS]...\n")


def test_page_of_the_program_explains_options_and_statuses(demo: Demo) -> None:
    page = demo("-h").out

    assert page.index("Commands:") < page.index("--repo PATH") < page.index("EXIT STATUS:\n  0    ")


def test_commands_are_shown_by_what_they_are_for_and_new_ones_too() -> None:
    entry = LazyCommand("cli.demo_verbs:say", "Say a thing")
    group = LazyGroup(
        "demo",
        {"a": entry, "bb": entry, "new": entry},
        help_text="Try.",
        examples=[],
        sections={"Look": ("bb", "planned"), "Act": ("a",)},
    )
    with click.Context(group, info_name="demo") as context:
        page = group.get_help(context)

    told = "Look:\n  bb   Say a thing\n\nAct:\n  a    Say a thing\n\nMore:\n  new  Say a thing\n"
    assert told in page


def test_person_who_types_a_group_alone_gets_its_page(
    session: Session, demo: Callable[..., Ran]
) -> None:
    there = session._replace(output_format="text", stdout_is_tty=True)

    ran = demo("deep", given=there)

    assert (ran.status, ran.err) == (2, "")
    assert ran.out.startswith("Usage: demo deep [OPTIONS] COMMAND [ARGS]...\n")


@pytest.mark.parametrize(
    ("words", "message", "meant"),
    [
        (["shwo"], "demo has no command 'shwo'", "did you mean `demo show`?"),
        (["SAY"], "demo has no command 'SAY'", "did you mean `demo say`?"),
        (["settings"], "demo has no command 'settings'", "did you mean `demo deep settings`?"),
        (["deep", "setting"], "demo deep has no command 'setting'", "`demo deep settings`?"),
        (["xyzzy"], "demo has no command 'xyzzy'", "hint: `demo --help` lists what there is"),
        (["\x1b[2J\n"], r"demo has no command '\x1b[2J\n'", "hint: "),
    ],
)
def test_unknown_name_is_refused_with_the_nearest(
    words: list[str], message: str, meant: str, demo: Demo
) -> None:
    ran = demo(*words)

    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {message}\n")
    assert meant in ran.err


def test_unknown_name_is_a_fact_for_programs(demo: Demo) -> None:
    error = json.loads(demo("--format", "json", "shwo").err)["error"]

    assert (error["code"], error["given"], error["nearest"]) == (
        "no-such-command",
        "shwo",
        ["demo show"],
    )


@pytest.mark.parametrize("words", [[], ["--format", "text"], ["--"]])
def test_group_alone_is_refused_with_its_commands(words: list[str], demo: Demo) -> None:
    ran = demo(*words)

    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("error: demo needs a command\nhint: one of say, show, fail, ")


def test_nested_group_alone_is_refused(demo: Demo) -> None:
    assert demo("deep").err.startswith("error: demo deep needs a command\nhint: one of settings; ")


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("demo de", "plain,deep\n"),
        ("demo deep ", "plain,settings\n"),
        ("demo --r", "plain,--repo\n"),
        ("demo --format ", "plain,json\nplain,yaml\nplain,text\n"),
    ],
)
def test_names_are_completed_without_importing_commands(
    typed: str, completed: str, demo: Demo, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "cli.demo_verbs", raising=False)
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))

    ran = demo(given=session._replace(environ={"_DEMO_COMPLETE": "bash_complete"}))

    assert ran == Ran(0, completed, "")
    assert "cli.demo_verbs" not in sys.modules


def test_summary_of_a_group_is_its_first_line() -> None:
    assert DEEP.summary == "Hold what is deeper"


def test_entry_that_is_no_command_is_refused() -> None:
    with pytest.raises(TypeError, match="demo_verbs:NO_COMMAND is not a command"):
        LazyCommand("cli.demo_verbs:NO_COMMAND", "").load()


def test_entry_names_its_module() -> None:
    assert LazyCommand("a.b:c", "").module == "a.b"


HIDING = LazyGroup(
    "hiding",
    {
        "say": LazyCommand("cli.demo_verbs:say", "Say a thing"),
        "plumbing": LazyCommand("cli.demo_verbs:settings", "Tell", hidden=True),
    },
    help_text="Hide a thing.",
    examples=["hiding say hello"],
)


@pytest.mark.parametrize("words", [["--help"], [], ["plumbin"]])
def test_hidden_command_is_not_listed(
    words: list[str], session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    run(HIDING, words, prog="hiding", environ={}, session=session)

    told = "".join(capsys.readouterr())
    assert "say" in told or words == ["plumbin"]
    assert "plumbing" not in told


def test_hidden_command_is_not_completed(
    session: Session, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_WORDS", "hiding ")
    monkeypatch.setenv("COMP_CWORD", "1")
    asking = session._replace(environ={"_HIDING_COMPLETE": "bash_complete"})

    run(HIDING, [], prog="hiding", environ={}, session=asking)

    assert capsys.readouterr().out == "plain,say\n"


def test_hidden_command_runs(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(HIDING, ["plumbing"], prog="hiding", environ={}, session=session) == 0
    assert capsys.readouterr().err == ""
