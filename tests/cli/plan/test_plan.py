"""The verbs of `uwf plan`, on one project."""

import io
import json
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli.program import Uwf
from plan.played import start_task
from plan.stories import NO, Story
from refusing import refuses
from workflows.plan_agent import write_plan_agent

from uwf_git.cli.plan import clean_command, plans_command, plugin_command, status_command
from uwf_git.cli.plan_run import PlanDriver, ask_person, listening, tell_failures
from uwf_git.commands.plan import Views
from uwf_git.model.names import ThreadId
from uwf_git.plan.hooks import TOOLS, CannotListen
from uwf_git.plan.phases import fold_story, read_state
from uwf_git.plan.settings import DEFAULTS
from uwf_git.store.git.config import set_config
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.local_files import ThreadBusy, lock_drive


@pytest.fixture
def project(uwf: Uwf) -> Path:
    (uwf.place / "shop/docs/plans").mkdir(parents=True)
    (uwf.place / "shop/docs/plans/000-准备.md").write_text("x")
    return uwf.place / "shop"


def test_thread_from_its_start_to_its_end(uwf: Uwf, project: Path) -> None:
    task = start_task(uwf.session.repo or "", project)
    task.run()

    told = uwf.json("plan", "status", "-d", "shop")
    rows = uwf("plan", "plans", "--dir", "shop", "--format", "text").out
    cleaned = uwf.json("plan", "clean", "--all", "-d", str(project))

    assert (told["phase"], told["currentPlan"], told["thread"]) == (
        "waiting_human",
        "000-准备",
        task.task_id,
    )
    assert "failed" in rows
    assert "pending, missing" in rows
    assert cleaned["ended"] == task.task_id
    assert set(cleaned["removed"]) == {".state/workflow.state.json", "docs/plans/000-准备.md"}
    assert uwf.json("plan", "clean", "-d", "shop") == {"ended": None, "removed": []}


def test_without_a_store(uwf: Uwf, project: Path, tmp_path: Path) -> None:
    home = {"repo": None, "environ": {"HOME": str(tmp_path)}, "cwd": str(project)}

    assert uwf.json("plan", "status", **home)["phase"] == "idle"
    assert uwf.json("plan", "plans", **home)[0]["tracked"] is False
    (project / "docs/plans/1-short.md").touch()
    assert "docs/plans/1-short.md is not named" in uwf("plan", "plans", **home).err
    assert not (tmp_path / ".uwf").exists()
    assert uwf("plan", "status", "--repo", str(tmp_path / "none.git")).status == 1


def test_directory_whose_name_is_no_text(uwf: Uwf) -> None:
    os.mkdir(os.fsencode(uwf.place) + b"/\xff")
    assert "is not UTF-8 text" in uwf("plan", "run", "task", cwd=f"{uwf.place}/\udcff").err


@pytest.mark.parametrize("tool", TOOLS)
def test_plugin_for_a_tool(uwf: Uwf, project: Path, tool: str) -> None:
    shown = uwf.json("plan", "plugin", "-d", "shop", "--for", tool)
    installed = uwf.json("plan", "plugin", "-d", "shop", "--for", tool, "--install")
    removed = uwf.json("plan", "plugin", "-d", "shop", "--uninstall")

    assert (project / ".plugins/workflow/hooks/stop_hook").is_file()
    assert shown["written"][0] == ".plugins/workflow/manifest.json"
    assert installed["written"] == []
    assert shown["command"].endswith("stop_hook")
    assert set(installed["changed"]) == set(shown["settings"])
    text = uwf("plan", "plugin", "-d", "shop", "--for", tool, "--format", "text").out
    assert "".join(json.dumps(shown["settings"]).split()).strip("{}") in "".join(text.split())
    assert sorted(removed["changed"]) == sorted(installed["changed"])
    assert sorted(path.name for path in project.iterdir()) == [".plugins", "docs"]


def test_settings_of_the_user_are_refused_whole(uwf: Uwf, project: Path) -> None:
    (project / ".claude").mkdir()
    settings = project / ".claude/settings.local.json"
    settings.write_text("{ // mine\n}")

    ran = uwf("plan", "plugin", "-d", "shop", "--for", "claude", "--install")

    assert ran.status == 1
    assert ran.err.startswith("error: .claude/settings.local.json is not JSON")
    assert settings.read_text() == "{ // mine\n}"


def test_each_verb_takes_a_directory() -> None:
    for verb in (status_command, plans_command, clean_command, plugin_command):
        assert "--dir" in {name for option in verb.params for name in option.opts}


# Where `uwf plan run` and `uwf plan resume` receive stop notices.


@pytest.mark.parametrize(
    ("typed", "hint"),
    [("c\n\n", ""), ("what\n\ncontinue\n 用 make \n", "用 make"), ("s\n", None), ("stop\n", None)],
)
def test_person_decides(monkeypatch: pytest.MonkeyPatch, typed: str, hint: str | None) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))

    assert ask_person() == hint


@pytest.mark.parametrize(("stdin", "stderr"), [(False, True), (True, False)])
def test_nobody_is_asked_off_a_terminal(uwf: Uwf, *, stdin: bool, stderr: bool) -> None:
    agent = write_plan_agent(uwf.place, "executor crash")
    assert uwf("plan", "run", "x", "--agent", agent, "--max-retries", "1").status == 3

    ran = uwf("plan", "resume", stdin_is_tty=stdin, stderr_is_tty=stderr)

    assert (ran.status, "Continue with" in ran.err) == (3, False)


def test_person_who_leaves_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for typed in ("", "c\n"):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        with pytest.raises(KeyboardInterrupt):
            ask_person()
    monkeypatch.setattr("sys.stdin", io.StringIO("c\n\udcff\n"))
    with refuses("not-text"):
        ask_person()


def test_failures_are_told_with_phase_and_plan(uwf: Uwf) -> None:
    tell_failures(fold_story(Story().step("planner").step("plan-verifier", NO).told))
    stuck = Story().planned().plan().crash("executor").crash("executor", "failed")
    tell_failures(fold_story(stuck.told))

    assert uwf.capsys.readouterr().err.splitlines() == [
        "the planning has failed:",
        "try 1: rejected: 缺少测试; x; write one",
        "the execution of docs/plans/001-b.md has failed:",
        "try 1: exit status 1",
        "try 2: exit status 1",
    ]


@pytest.fixture
def taken() -> Iterator[int]:
    """Return a port that somebody else has."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("more", [(), ("--background",)])
def test_typed_port_that_is_taken_begins_nothing(
    uwf: Uwf, taken: int, more: tuple[str, ...]
) -> None:
    agent = write_plan_agent(uwf.place)
    before = sorted(uwf.place.iterdir())

    ran = uwf("plan", "run", "x", "--agent", agent, "--port", str(taken), *more)
    ran.refused(1, f"127.0.0.1 port {taken}")
    assert sorted(uwf.place.iterdir()) == before
    assert uwf.json("thread", "list") == []


def test_typed_port_that_is_taken_resumes_nothing(uwf: Uwf, taken: int) -> None:
    task = start_task(uwf.session.repo or "", uwf.place)
    uwf.json("thread", "pause", task.task_id)

    uwf("plan", "resume", "--port", str(taken)).says(1, str(taken))
    assert task.status == "paused"


def test_who_may_not_drive_leaves_the_port_of_the_driver(uwf: Uwf) -> None:
    place, store = str(uwf.place), uwf.session.open_store()
    thread = ThreadId(start_task(store.path, uwf.place).task_id)
    loser = PlanDriver(uwf.session, store, place, thread)
    Views(store, place).update(get_head(store, thread).commit, {"thread": thread, "port": 1})

    with (
        lock_drive(store, thread, since_ms=1),
        listening(DEFAULTS, 0, elsewhere=False) as watch,
        pytest.raises(ThreadBusy),
    ):
        loser.drive(watch)

    assert read_state(place)["port"] == 1


@contextmanager
def no_more_files() -> Iterator[None]:
    """Let this process open nothing more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_without_a_server_plans_are_driven_unless_somebody_asked_for_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with no_more_files(), listening(DEFAULTS, None, elsewhere=False) as watch:
        assert watch is None
    assert "has to be ended by hand" in capsys.readouterr().err
    for settings, port in ((DEFAULTS, 0), (DEFAULTS._replace(address="127.0.0.2"), None)):
        with no_more_files(), pytest.raises(CannotListen):
            listening(settings, port, elsewhere=False).__enter__()


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [("stopGrace", "soon", 1), ("planDir", "../x", 1), ("agent", "./mine", 1)],
)
def test_setting_of_the_store_is_checked_before_anything_begins(
    uwf: Uwf, name: str, value: str, status: int
) -> None:
    set_config(f"{uwf.session.repo}/config", f"uwf.plan.{name}", value)

    for verb in (("run", "x"), ("status",), ("plans",), ("clean",), ("plugin",)):
        uwf("plan", *verb).says(status, f"uwf.plan.{name}")
    assert list(uwf.place.iterdir()) == []


def test_settings_of_a_user_name_the_files(uwf: Uwf) -> None:
    for name, value in (("planDir", "plans"), ("stateFile", "state/now.json")):
        uwf.json("config", "set", f"plan.{name}", value)
    task = start_task(uwf.session.repo or "", uwf.place)
    (uwf.place / "plans").mkdir()
    (uwf.place / "plans/000-a.md").write_text("x")

    assert uwf.json("plan", "status")["thread"] == task.task_id
    assert uwf.json("plan", "plans")[0]["file"] == "plans/000-a.md"
    assert json.loads(Path(uwf.place / "state/now.json").read_text())["thread"] == task.task_id
    assert uwf.json("plan", "clean", "--all")["removed"] == ["state/now.json", "plans/000-a.md"]
