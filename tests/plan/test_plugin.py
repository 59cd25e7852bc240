import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from refusing import refuses

from uwf_git.plan.hooks import (
    TOOLS,
    StopHook,
    find_hook,
    install_hook,
    uninstall_hooks,
    write_plugin,
)
from uwf_git.plan.phases import STATE_FILE
from uwf_git.plan.project_files import keep_out_of_git, replace_whole

FOREIGN = {"model": "x", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}}


@pytest.fixture
def hook(tmp_path: Path) -> StopHook:
    return find_hook(str(tmp_path), ".plugins")


def files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_plugin_is_written_once(tmp_path: Path, hook: StopHook) -> None:
    state_file = str(tmp_path / STATE_FILE)

    written = write_plugin(hook, "1.0", state_file=state_file)

    assert [os.path.relpath(each, hook.plugin) for each in written] == [
        "manifest.json",
        ".claude-plugin/plugin.json",
        "hooks/config.json",
        "hooks/stop_hook",
    ]
    assert set(files(tmp_path / ".plugins")) == {
        ".gitignore",
        *(f"workflow/{os.path.relpath(each, hook.plugin)}" for each in written),
    }
    assert 'STATE_FILE = "../../../' not in Path(hook.script).read_text()
    assert os.access(hook.script, os.X_OK)
    assert write_plugin(hook, "1.0", state_file=state_file) == []
    assert [os.path.basename(each) for each in write_plugin(hook, "2", state_file=state_file)] == [
        "manifest.json",
        "plugin.json",
    ]


def test_plugins_are_no_files_of_the_project(
    tmp_path: Path, hook: StopHook, git: Callable[..., str]
) -> None:
    git("init", "--quiet", cwd=tmp_path)
    write_plugin(hook, "1.0", state_file=str(tmp_path / STATE_FILE))

    assert git("status", "--short", cwd=tmp_path) == ""


@pytest.mark.parametrize("tool", TOOLS)
def test_project_is_as_before_after_both(tmp_path: Path, hook: StopHook, tool: str) -> None:
    (tmp_path / "README.md").write_text("x")
    before = files(tmp_path)

    installed = install_hook(str(tmp_path), tool, hook)
    again = install_hook(str(tmp_path), tool, hook)
    during = files(tmp_path)
    removed = uninstall_hooks(str(tmp_path))

    assert again == []
    assert set(during) == {*before, *installed}
    assert sorted(removed) == sorted(installed)
    assert bool(installed) == (tool in {"claude", "codex"})
    assert files(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert uninstall_hooks(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("tool", "path"),
    [
        ("claude", ".claude/settings.local.json"),
        ("codex", ".codex/hooks.json"),
    ],
)
def test_settings_of_the_project_stay(tmp_path: Path, hook: StopHook, tool: str, path: str) -> None:
    settings = tmp_path / path
    settings.parent.mkdir()
    before = json.dumps(FOREIGN, indent=4)
    settings.write_text(before)
    settings.chmod(0o640)

    assert install_hook(str(tmp_path), tool, hook) == [path]
    assert json.loads(settings.read_text())["model"] == "x"
    assert hook.script in settings.read_text()
    assert stat.S_IMODE(settings.stat().st_mode) == 0o640
    uninstall_hooks(str(tmp_path))
    assert settings.read_text() == before


def test_settings_behind_a_link_are_refused_and_never_ours(tmp_path: Path, hook: StopHook) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "hooks.json").write_text(json.dumps({"hooks": {"Stop": [ours(hook)]}}))
    before = files(home)
    (tmp_path / "project/.claude").mkdir(parents=True)
    (tmp_path / "project/.claude/settings.local.json").symlink_to(home / "hooks.json")
    (tmp_path / "project/.codex").symlink_to(home)

    for tool in ("claude", "codex"):
        with refuses("settings-refused"):
            install_hook(str(tmp_path / "project"), tool, hook)
    assert uninstall_hooks(str(tmp_path / "project")) == []
    assert files(home) == before


def ours(hook: StopHook) -> dict[str, str]:
    return {"type": "command", "command": hook.command}


def test_what_older_versions_installed_is_taken_out(tmp_path: Path, hook: StopHook) -> None:
    entry = ours(hook)
    nested = {"hooks": {"AfterAgent": [{"hooks": [{"name": "uwf-stop", **entry}]}]}}
    merged = {
        ".gemini/settings.json": {"ui": {"theme": "x"}, **nested},
        ".qwen/settings.json": nested,
        ".cursor/hooks.json": {"version": 1, "hooks": {"stop": [entry], "sessionEnd": [entry]}},
    }
    whole = {
        ".github/hooks/uwf-stop.json": json.dumps({"hooks": {"agentStop": [entry]}}),
        ".opencode/plugins/uwf-stop.js": f"// uwf\nspawn({json.dumps(hook.argv)})",
        ".agents/plugins/uwf-stop/plugin.json": json.dumps({"name": "uwf-stop"}),
        ".agents/plugins/uwf-stop/hooks/hooks.json": json.dumps(nested),
    }
    for path, text in {**{each: json.dumps(it) for each, it in merged.items()}, **whole}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    assert set(uninstall_hooks(str(tmp_path))) == {*merged, *whole}

    assert set(files(tmp_path)) == {".gemini/settings.json"}
    assert json.loads(files(tmp_path)[".gemini/settings.json"]) == {"ui": {"theme": "x"}}


@pytest.mark.parametrize("content", ["{ // stop_hook\n}", '["stop_hook"]'])
def test_settings_that_would_lose_something_are_refused(
    tmp_path: Path, hook: StopHook, content: str
) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/hooks.json").write_text(content)

    with refuses("settings-refused") as refused:
        install_hook(str(tmp_path), "codex", hook)
    assert refused.value.message.startswith(".codex/hooks.json ")
    with refuses("settings-refused"):
        uninstall_hooks(str(tmp_path))
    (tmp_path / ".codex/hooks.json").write_text("{ // mine\n}")
    assert uninstall_hooks(str(tmp_path)) == []


def test_settings_that_are_no_text_are_refused(tmp_path: Path, hook: StopHook) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/hooks.json").write_bytes(b"\xff")

    with refuses("settings-refused"):
        install_hook(str(tmp_path), "codex", hook)


def test_plugin_folder_outside_is_refused(tmp_path: Path) -> None:
    with refuses("settings-refused"):
        find_hook(str(tmp_path), "../elsewhere")


@pytest.mark.parametrize("folder", ["", "workflow", "workflow/hooks", "workflow/.claude-plugin"])
def test_link_that_leads_out_of_the_plugin_folder_is_refused(tmp_path: Path, folder: str) -> None:
    link = tmp_path / "project/.plugins" / folder
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path)

    with refuses("settings-refused"):
        find_hook(str(tmp_path / "project"), ".plugins")


def test_folder_of_others_behind_our_name_is_not_ignored(tmp_path: Path) -> None:
    (tmp_path / "others").mkdir()
    (tmp_path / ".state").symlink_to("others")

    keep_out_of_git(str(tmp_path / ".state"))
    assert files(tmp_path) == {}


def test_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/x").touch()

    with pytest.raises(OSError, match="folder"):
        replace_whole(str(tmp_path / "folder"), b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder"]
