"""Real programs with the stop hook: they answer as without it, and the notice arrives."""

import queue
from pathlib import Path

import pytest
from realcli.conftest import FRONT, Cli
from realcli.vendors import CLAUDE, CODEX, COPILOT

from uwf_git.plan.hooks import HOOK_VARIABLE, Notice, StopHook, StopServer, find_hook, write_plugin
from uwf_git.plan.phases import IDLE, STATE_FILE, write_state

_PATIENCE_S = 30
PROGRAMS = (CLAUDE, COPILOT, CODEX)


def prepare(cli: Cli) -> StopHook:
    """Write the plugin of the program's project."""
    hook = find_hook(str(cli.project), ".plugins")
    write_plugin(hook, "1.0", state_file=str(cli.project / STATE_FILE))
    return hook


def homes_hooks(home: Path, script: str) -> list[str]:
    """List the settings in the home that know of the hook; caches and logs may."""
    names = ("settings*.json", "hooks*.json", "config.toml", "*.js")
    found = (path for name in names for path in home.rglob(name) if path.is_file())
    return [str(path) for path in found if script in path.read_text(errors="replace")]


@pytest.mark.parametrize("cli", PROGRAMS, indirect=True, ids=[each.name for each in PROGRAMS])
def test_program_answers_as_without_it_and_the_notice_arrives(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: queue.SimpleQueue[Notice] = queue.SimpleQueue()
    hook = prepare(cli)
    plain = cli.ask({"text": FRONT})
    with StopServer(taken.put, 0) as server:
        state = IDLE._replace(status="ready", stage="executing")
        where = {"thread": "T", "address": server.address, "port": server.port}
        write_state(str(cli.project), state, where)
        # As in a turn of a plan, where the adapter gives it to those that take it.
        monkeypatch.setenv("UWF_THREAD_ID", "T")
        monkeypatch.setenv(HOOK_VARIABLE, f"T:{hook.script}")

        hooked = cli.ask({"text": FRONT})
        notice = taken.get(timeout=_PATIENCE_S)

    assert (hooked.text, hooked.structured) == (plain.text, plain.structured) == (FRONT, None)
    assert (notice.phase, notice.thread) == ("executing", "T")
    assert homes_hooks(cli.home, hook.script) == []
