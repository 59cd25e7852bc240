"""The verbs of `uwf plan`, on one project."""

import json
import os
from pathlib import Path

import pytest
from cli.program import Uwf
from plan.played import start_task

from uwf_git.cli.plan import clean_command, plans_command, plugin_command, status_command
from uwf_git.plan.hooks import TOOLS

VERBS = (status_command, plans_command, clean_command, plugin_command)


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


def test_directory_that_is_none(uwf: Uwf) -> None:
    ran = uwf("plan", "plans", "-d", "nowhere")

    assert ran.status == 2
    assert ran.err.startswith("error: nowhere is not a directory")
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


@pytest.mark.parametrize(
    "words", [("--install",), ("--for", "claude", "--install", "--uninstall"), ("--for", "vi")]
)
def test_wrong_usage_of_plugin(uwf: Uwf, words: tuple[str, ...]) -> None:
    assert uwf("plan", "plugin", *words).status == 2
    assert not (uwf.place / ".plugins").exists()


def test_each_verb_takes_a_directory() -> None:
    for verb in VERBS:
        assert "--dir" in {name for option in verb.params for name in option.opts}
