import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from cli.demo_verbs import say
from cli.program import Ran, Uwf
from commands.world import DEMO
from hypothesis import given
from hypothesis import strategies as st
from programs import write_program

from uwf_git.cli.app.lazy_group import (
    EXIT_STATUS,
    LazyCommand,
    LazyGroup,
    explicit_format,
    run,
    write_examples,
)
from uwf_git.cli.app.verb import Verb
from uwf_git.cli.session import Session
from uwf_git.debug_log import is_on
from uwf_git.errors import AgentFailed, BadUsage, Conflict, Refused, StoreDamaged, StoreFailed
from uwf_git.store.git.config import set_config

Demo = Callable[..., Ran]


def test_person_who_types_a_group_alone_gets_its_page(
    session: Session, demo: Callable[..., Ran]
) -> None:
    ran = demo("deep", given=session._replace(output_format="text", stdout_is_tty=True))

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
    assert demo(*words).refused(2, meant).err.startswith(f"error: {message}\n")


def test_nested_group_alone_is_refused(demo: Demo) -> None:
    assert demo("deep").err.startswith("error: demo deep needs a command\nhint: one of settings; ")


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


@pytest.mark.parametrize(
    ("words", "repo"),
    [
        (["deep", "settings"], None),
        (["--repo", "a", "deep", "settings"], "a"),
        (["deep", "--repo", "b", "settings"], "b"),
        (["deep", "settings", "--repo=c"], "c"),
        (["--repo", "a", "deep", "--repo", "b", "settings"], "b"),
        (["--repo", "a", "deep", "--repo", "b", "settings", "--repo", "c"], "c"),
    ],
)
def test_repo_may_stand_anywhere_and_the_last_one_counts(
    words: list[str], repo: str | None, demo: Demo
) -> None:
    assert json.loads(demo(*words).out)["repo"] == repo


def test_one_command_does_not_change_the_settings_of_the_next(demo: Demo) -> None:
    demo("say", "x", "--format", "text", "--repo", "a")

    assert json.loads(demo("deep", "settings").out)["repo"] is None


@pytest.mark.parametrize("words", [["--repo", "", "say", "x"], ["say", "x", "--repo="]])
def test_empty_repo_is_refused(words: list[str], demo: Demo) -> None:
    ran = demo(*words)

    assert ran.status == 2
    assert ran.err.startswith("error: invalid value for '--repo': it needs a path\n")


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ([], None),
        (["say", "json"], None),
        (["--format", "json"], "json"),
        (["--format=json", "say", "--format", "yaml"], "yaml"),
        (["--format", "xml"], None),
        (["--format"], None),
        (["--", "--format", "json"], None),
        (["--format", "--", "json"], None),
        (["--format-x=json", "--format", "--format=json"], None),
    ],
)
def test_format_is_known_before_the_words_are_understood(
    words: list[str], chosen: str | None
) -> None:
    assert explicit_format(words) == chosen


@given(st.lists(st.sampled_from(["--format", "json", "text", "--format=yaml", "--", "x"])))
def test_any_words_have_a_format_or_none(words: list[str]) -> None:
    assert explicit_format(words) in {None, "json", "text", "yaml"}


@pytest.mark.parametrize(
    "words", [["--debug", "say", "x"], ["say", "x", "--debug"], ["--debug", "say", "--debug", "x"]]
)
def test_debug_may_stand_anywhere_and_leaves_the_result_alone(words: list[str], demo: Demo) -> None:
    ran = demo(*words)

    assert (ran.status, ran.out) == (0, demo("say", "x").out)
    tags = {json.loads(line)["tag"] for line in ran.err.splitlines() if line.startswith("{")}
    assert tags == {"W8FET4CS"}


def test_failed_command_does_not_log_for_the_next_either(demo: Demo) -> None:
    assert demo("--debug", "say").status == 2
    assert not is_on()


def test_processes_of_a_command_get_the_signal_too(ran: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "demo.yaml").write_text(DEMO)
    says = """printf '{"meta": {"text": "x", "ok": true}, "content": "%s"}' "$UWF_DEBUG" """
    agent = write_program(tmp_path / "agent", says)
    store = {"UWF_REPO": str(tmp_path / "store.git")}
    assert ran("uwf_git", "init", store["UWF_REPO"]).status == 0

    words = ("run", f"{tmp_path}/demo.yaml", "-p", "x", f"--agent={agent}")
    began = ran("uwf_git", "--debug", *words, env=store)

    assert began.status == 0, began.err
    thread = json.loads(began.out)["thread"]
    shown = json.loads(ran("uwf_git", "thread", "show", thread, env=store).out)
    assert shown["step"]["content"] == "1"
    told = [json.loads(line) for line in began.err.splitlines() if line.startswith("{")]
    assert {"store opened", "lock taken", "decided", "agent bound", "head moved"} <= {
        line["content"] for line in told
    }


def test_kit_of_an_agent_logs_to_a_file_and_never_where_it_is_recorded(
    ran: Callable[..., Ran], tmp_path: Path
) -> None:
    (tmp_path / "demo.yaml").write_text(DEMO.replace(", required: [text]", ""))
    path = tmp_path / "log"
    store = {"UWF_REPO": str(tmp_path / "store.git"), "UWF_DEBUG": str(path)}
    assert ran("uwf_git", "init", store["UWF_REPO"]).status == 0

    words = ("run", f"{tmp_path}/demo.yaml", "-p", "x", "--until", "writer")
    began = ran("uwf_git", *words, "--agent=uwf-shell true", env=store)

    assert (began.status, "tag" in began.err) == (0, False), began.err
    pids = {json.loads(line)["pid"] for line in path.read_text().splitlines()}
    assert len(pids) == 2
    assert os.getpid() not in pids


def test_broken_standard_error_does_not_keep_a_command_from_its_work(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    store = str(tmp_path / "store.git")
    with start("uwf_git", "--debug", "init", store) as process:
        assert process.stderr is not None
        process.stderr.close()
        assert process.stdout is not None
        told = json.loads(process.stdout.read())

    assert process.returncode == 0
    assert told["repo"] == store


def test_every_kind_of_error_has_its_status_explained() -> None:
    kinds = (Refused, BadUsage, AgentFailed, Conflict, StoreDamaged, StoreFailed)

    assert {kind.exit_status for kind in kinds} <= EXIT_STATUS.keys()


def test_page_without_examples_has_no_heading_for_them() -> None:
    formatter = click.HelpFormatter()

    write_examples(formatter, [])

    assert formatter.getvalue() == ""


def test_verb_is_a_click_command() -> None:
    assert isinstance(say, Verb)
    assert say.examples == ("demo say hello",)


# What `uwf` answers to a shell, by the protocol of fish: `type,word<TAB>meaning`.


@pytest.fixture
def offered(uwf: Uwf, monkeypatch: pytest.MonkeyPatch) -> "Offered":
    return Offered(uwf, monkeypatch)


class Offered:
    """Ask what completes a line whose last word is being typed."""

    def __init__(self, uwf: Uwf, monkeypatch: pytest.MonkeyPatch) -> None:
        self.uwf, self.monkeypatch = uwf, monkeypatch

    def __call__(self, line: str) -> dict[str, str]:
        words, _, typed = line.rpartition(" ")
        # click itself reads these two.
        self.monkeypatch.setenv("COMP_WORDS", words)
        self.monkeypatch.setenv("COMP_CWORD", typed)
        ran = self.uwf(environ={**self.uwf.session.environ, "_UWF_COMPLETE": "fish_complete"})
        assert (ran.status, ran.err) == (0, "")
        found: dict[str, str] = {}
        for row in ran.out.splitlines():
            word, _, meaning = row.partition("\t")
            if word:
                found[word.removeprefix("plain,")] = meaning
        return found


def test_thread_is_offered_with_its_status_workflow_and_task(offered: Offered, thread: str) -> None:
    assert offered("uwf thread show ") == {thread: "ready, demo: Do it."}
    assert list(offered(f"uwf thread show {thread[:9].lower()}")) == [thread]
    assert list(offered("uwf thread step it.")) == [thread]
    assert offered("uwf thread show 7Z") == {}
    for verb in ("diff", "take"):
        assert list(offered(f"uwf thread {verb} {thread} ")) == [thread]
    assert list(offered(f"uwf thread wait {thread} ")) == [thread]


def test_verb_is_offered_the_threads_that_it_can_change(uwf: Uwf, offered: Offered) -> None:
    thread = uwf.begun()
    uwf.json("thread", "pause", thread)
    other = uwf.killed()

    assert list(offered("uwf thread resume ")) == [thread]
    assert list(offered("uwf thread rm ")) == [other]
    assert list(offered("uwf thread pause ")) == [thread]
    assert list(offered("uwf thread read ")) == [other, thread]
    for verb in ("answer", "retry"):
        assert offered(f"uwf thread {verb} ") == {}


def test_workflow_is_offered_by_name_or_else_as_a_file(uwf: Uwf, offered: Offered) -> None:
    uwf.json("workflow", "put", uwf.file())

    for words in ("run", "workflow show", "thread start"):
        # With those that uwf brings.
        assert list(offered(f"uwf {words} de")) == ["demo", "develop"]
    for option in ("thread list --workflow", "search x --workflow"):
        assert next(iter(offered(f"uwf {option} "))) == "demo"
    assert list(offered("uwf workflow history de")) == ["demo"]
    assert list(offered("uwf run ./")) == ["file,./"]
    assert offered("uwf workflow history ./") == {}


def test_role_is_offered_of_the_thread_or_workflow_that_is_named(
    uwf: Uwf, thread: str, offered: Offered
) -> None:
    uwf.json("workflow", "put", uwf.file(DEMO.replace("demo", "other"), name="other.yaml"))

    both = {"writer": "of demo", "checker": "of demo"}
    assert offered(f"uwf thread context {thread} --role ") == both
    assert offered("uwf search x --workflow other --role w") == {"writer": "of other"}
    (owners,) = offered("uwf search x --role w").values()
    assert sorted(owners.removeprefix("of ").split(", ")) == ["demo", "other"]


def test_remote_is_offered_with_its_place(uwf: Uwf, offered: Offered) -> None:
    uwf.json("init", "hub.git", repo=None)
    uwf.json("remote", "add", "team", str(uwf.place / "hub.git"))

    for words in ("push", "fetch", "remote remove"):
        ((name, place),) = offered(f"uwf {words} t").items()
        assert (name, place[:8]) == ("team", str(uwf.place)[:8])
    assert offered("uwf remote add ") == {}
    assert offered("uwf config get ") == {}


def test_nothing_is_said_of_a_changed_config(uwf: Uwf, offered: Offered) -> None:
    thread = uwf.stepped()
    set_config(f"{uwf.session.repo}/config", "core.editor", "other")

    assert list(offered("uwf thread show ")) == [thread]
    assert "config was changed" in uwf("thread", "show", thread).err


def test_without_a_store_nothing_is_offered_or_made(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_WORDS", "uwf thread show")
    monkeypatch.setenv("COMP_CWORD", "")
    environ = {**uwf.session.environ, "_UWF_COMPLETE": "fish_complete"}

    ran = uwf(environ=environ, repo=str(uwf.place / "none.git"))

    assert (ran.out, ran.err) == ("", "")
    assert not (uwf.place / "none.git").exists()
