import json
import subprocess
import tomllib
from collections.abc import Callable

from uwf_git.plan.hooks import TOOLS, StopHook, advise, build_plugin, build_settings, list_run_words

HOOK = StopHook("/srv/my shop/.plugins/workflow/hooks/stop_hook", "/usr/bin/python3")


def test_forms_of_all_tools(golden: Callable[[str, str], None]) -> None:
    shown = ["# The stop hook, tool by tool", ""]
    for tool in TOOLS:
        shown += [f"## {tool}", ""]
        words = list_run_words(tool, HOOK)
        shown += [f"a run: {words}", ""] if words else []
        for path, settings in build_settings(tool, HOOK).items():
            shown += [f"into {path}:", "", json.dumps(settings, indent=2), ""]
        advice = advise(tool, HOOK)
        shown += [f"advice: {advice}", ""] if advice else []
    for path, text in build_plugin(HOOK, "1.2.3").items():
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
