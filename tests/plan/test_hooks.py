"""The stop hook: the forms of tools, its plugin folder, the settings of a project."""

import json
import stat
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.plan.hooks import (
    TOOLS,
    NotMergeable,
    StopHook,
    add_hooks,
    advise,
    build_plugin,
    build_settings,
    find_hook,
    install_hook,
    list_run_words,
    remove_hooks,
    uninstall_hooks,
    write_plugin,
)
from uwf_git.plan.phases import STATE_FILE

SPACED = StopHook("/srv/my shop/.plugins/workflow/hooks/stop_hook", "/usr/bin/python3")


def test_forms_of_all_tools(golden: Callable[[str, str], None]) -> None:
    shown = ["# The stop hook, tool by tool", ""]
    for tool in TOOLS:
        shown += [f"## {tool}", ""]
        words = list_run_words(tool, SPACED)
        shown += [f"a run: {words}", ""] if words else []
        for path, settings in build_settings(tool, SPACED).items():
            shown += [f"into {path}:", "", json.dumps(settings, indent=2), ""]
        advice = advise(tool, SPACED)
        shown += [f"advice: {advice}", ""] if advice else []
    for path, text in build_plugin(SPACED, "1.2.3").items():
        shown += [f"## plugin: {path}", "", text]

    golden("plan/hooks.md", "\n".join(shown))


def test_words_survive_a_shell() -> None:
    hook = StopHook("/a b/$HOME/`id`/stop_hook", "/opt/it's/python")

    ran = subprocess.run(
        ["/bin/sh", "-c", f"printf '%s\\n' {hook.command}"], capture_output=True, check=True
    )

    assert ran.stdout.decode().splitlines() == hook.argv


def test_words_of_codex_are_toml() -> None:
    hook = StopHook('/srv/项目 😀 "x"/stop_hook', "/usr/bin/python3")

    _, setting = list_run_words("codex", hook)

    assert tomllib.loads(setting) == {"notify": hook.argv}
    assert list_run_words("other", hook) == []


HOOK = StopHook("/srv/shop/.plugins/workflow/hooks/stop_hook", "/usr/bin/python3")
SETTINGS = build_settings("claude", HOOK)[".claude/settings.local.json"]
FOREIGN = {"hooks": [{"type": "command", "command": "make lint", "timeout": 5}]}

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("aé界 \n\"'", max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
EVENTS = st.sampled_from(["Stop", "SessionEnd", "PreToolUse"])
# Of hooks that were empty before nobody knows later that they were there.
ENTRIES = st.lists(st.sampled_from([FOREIGN, {"hooks": "x"}]) | VALUES, min_size=1, max_size=2)


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), VALUES, max_size=3),
    st.none() | st.dictionaries(EVENTS, ENTRIES, min_size=1, max_size=3),
    st.sampled_from([2, 4, "\t"]),
    st.sampled_from(["", "\n", "\r\n"]),
)
def test_what_is_put_in_comes_out_again(
    more: dict[str, Any], hooks: dict[str, Any] | None, indent: Any, end: str
) -> None:
    document = {**more, **({} if hooks is None else {"hooks": hooks})}
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    text = (text.replace("\n", "\r\n") if end == "\r\n" else text) + end

    added = add_hooks(text, SETTINGS)
    now = json.loads(added)

    assert {key: value for key, value in now.items() if key != "hooks"} == more
    for event, entries in SETTINGS["hooks"].items():
        assert now["hooks"][event] == [*(hooks or {}).get(event, []), *entries]
    assert add_hooks(added, SETTINGS) == added
    assert remove_hooks(added, {}) == (text if document else "")


def test_key_of_the_user_stays() -> None:
    """Cursor's own file has a version, claude's could have any."""

    assert json.loads(remove_hooks(add_hooks('{"version": 7}', SETTINGS), {})) == {"version": 7}


def test_older_hook_of_ours_is_replaced() -> None:
    """The project was moved, or python was."""
    moved = StopHook("D:\\shop\\.plugins\\workflow\\hooks\\stop_hook", "C:\\python.exe")
    older = build_settings("claude", moved)[".claude/settings.local.json"]
    together = {
        "hooks": {"Stop": [{"hooks": [*FOREIGN["hooks"], *older["hooks"]["Stop"][0]["hooks"]]}]}
    }

    now = json.loads(add_hooks(json.dumps(together), SETTINGS))

    assert now["hooks"]["Stop"] == [FOREIGN, *SETTINGS["hooks"]["Stop"]]
    assert add_hooks(add_hooks("", older), SETTINGS) == json.dumps(SETTINGS, indent=2) + "\n"


def test_hook_of_somebody_else_with_a_like_name_stays() -> None:
    theirs = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "~/bin/stop_hook"}]}]}}
    text = json.dumps(theirs)

    assert remove_hooks(text, {}) == text


def test_mark_and_line_ends_stay() -> None:
    text = '\ufeff{\r\n\t"model": "opus"\r\n}\r\n'

    added = add_hooks(text, SETTINGS)

    assert added.startswith('\ufeff{\r\n\t"model": "opus",\r\n\t"hooks": {\r\n')
    assert remove_hooks(added, {}) == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{ // note\n}", "not JSON"),
        ('{"a": 1, "a": 2}', "there twice"),
        ("[]", "no JSON object"),
        ('{"hooks": []}', "hooks of another form"),
        ('{"hooks": {"Stop": {}}}', "hooks of another form"),
    ],
)
def test_settings_that_would_lose_something(text: str, problem: str) -> None:
    with pytest.raises(NotMergeable, match=problem):
        add_hooks(text, SETTINGS)
    with pytest.raises(NotMergeable, match=problem):
        remove_hooks(text, {})


PROJECT_SETTINGS = {
    "model": "x",
    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]},
}


@pytest.fixture
def hook(tmp_path: Path) -> StopHook:
    return find_hook(str(tmp_path), ".plugins")


def files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


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
    ("tool", "path"), [("claude", ".claude/settings.local.json"), ("codex", ".codex/hooks.json")]
)
def test_settings_of_the_project_stay(tmp_path: Path, hook: StopHook, tool: str, path: str) -> None:
    settings = tmp_path / path
    settings.parent.mkdir()
    before = json.dumps(PROJECT_SETTINGS, indent=4)
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
def test_files_that_would_lose_something_are_refused(
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
