from pathlib import Path

import pytest
from refusing import refuses

from uwf_git.plan.settings import (
    DEFAULTS,
    MEANINGS,
    TRUSTED,
    load_plan_settings,
    read_plan_settings,
)
from uwf_git.store.git.config import GitConfig, set_config
from uwf_git.store.store import Store, create_store, open_store
from uwf_git.store.trust import describe_command, trust_agents

SET = {
    "planDir": "plans",
    "memoryDir": "记忆",
    "stateFile": "state.json",
    "statusFile": "out/report.json",
    "pluginDir": "tools",
    "address": "::1",
    "port": "0",
    "maxRetries": "5",
    "planningTimeout": "30m",
    "executingTimeout": "90",
    "verifyingTimeout": "1.5h",
    "agent": "claude",
    "verifier": "codex --model x",
    "ai": "my-ai --fast",
    "stopGrace": "0",
    "hooks": "off",
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return create_store(str(tmp_path / "store.git"))


def config_of(**values: str) -> GitConfig:
    return GitConfig({f"uwf.plan.{name}".lower(): [value] for name, value in values.items()})


def test_every_setting_is_read() -> None:
    settings = read_plan_settings(config_of(**SET))

    assert {f"uwf.plan.{name}" for name in SET} == set(MEANINGS)
    assert not set(settings) & set(DEFAULTS)
    assert settings.timeouts_ms == {
        "planning": 1_800_000,
        "executing": 90_000,
        "verifying": 5_400_000,
    }
    assert (settings.stop_grace_s, settings.hooks, settings.port) == (0.0, False, 0)


def test_wrong_value_is_refused_by_its_name() -> None:
    for name, value in [
        ("planDir", "../plans"),
        ("planDir", "docs/[v2]"),
        ("stateFile", "/etc/passwd"),
        ("statusFile", ".git/config"),
        ("pluginDir", "."),
        ("address", "a b"),
        ("port", "65536"),
        ("port", "-1"),
        ("maxRetries", "0"),
        ("maxRetries", "three"),
        ("planningTimeout", "0"),
        ("executingTimeout", "soon"),
        ("verifyingTimeout", "60w"),
        ("agent", " "),
        ("stopGrace", "-1"),
        ("hooks", "maybe"),
    ]:
        with refuses("bad-plan-setting", match=rf"uwf\.plan\.{name} is") as refused:
            read_plan_settings(config_of(**{name: value}))

        assert f"uwf config set uwf.plan.{name}" in (refused.value.hint or "")


@pytest.mark.parametrize("name", TRUSTED)
def test_what_a_store_sets_has_to_be_trusted(store: Store, tmp_path: Path, name: str) -> None:
    value = SET[name.rpartition(".")[2]]
    set_config(f"{store.path}/config", name, value)
    opened = open_store(store.path, environ={"HOME": str(tmp_path)})

    with refuses("setting-not-trusted", match=name):
        load_plan_settings(opened, str(tmp_path))
    trust_agents(opened, [describe_command(name, value)], str(tmp_path))

    assert value in load_plan_settings(opened, str(tmp_path))


def test_user_needs_no_trust(store: Store, tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text('[uwf "plan"]\n\tagent = claude\n\tport = 1\n')

    settings = load_plan_settings(
        open_store(store.path, environ={"HOME": str(tmp_path)}), str(tmp_path)
    )

    assert (settings.agent, settings.port) == ("claude", 1)
