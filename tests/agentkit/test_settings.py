import os
from pathlib import Path

import pytest
from refusing import refuses

from uwf_git.agentkit.turn import KEYS, load_settings, parse_seconds, parse_words
from uwf_git.errors import BadUsage
from uwf_git.store.git.config import normal_name, set_config
from uwf_git.store.store import Store, create_store
from uwf_git.store.trust import describe_command, trust_agents

CONFIG = """\
[uwf "claude"]
    model = sonnet
    timeout = 9
[uwf "claude.reviewer"]
    model = opus
[uwf "claude.qa.v2"]
    model = haiku
[uwf "codex"]
    model = gpt
[uwf]
    agent = uwf-claude
"""


@pytest.fixture
def repo(tmp_path: Path) -> str:
    """Return a store whose config sets what any store may set."""
    (tmp_path / "config").write_text(CONFIG)
    return str(tmp_path)


def load(repo: str = "", role: str = "developer", **environ: str) -> dict[str, str]:
    words = {"model": environ.pop("word")} if "word" in environ else {}
    sealed = {"GIT_CONFIG_NOSYSTEM": "1", "UWF_REPO": repo}
    return load_settings("claude", role, environ=sealed | environ, words=words)


@pytest.mark.parametrize(("role", "model"), [("reviewer", "opus"), ("qa.v2", "haiku")])
def test_role_may_have_its_own(repo: str, role: str, model: str) -> None:
    assert load(repo, role) == {"model": model, "timeout": "9"}


def test_more_specific_one_wins(repo: str) -> None:
    assert load("", UWF_MODEL="all")["model"] == "all"
    assert load(repo, "reviewer", UWF_MODEL="all")["model"] == "opus"
    assert load(repo, "reviewer", UWF_CLAUDE_MODEL="mine")["model"] == "mine"
    assert load(repo, "reviewer", UWF_CLAUDE_MODEL="mine", word="word")["model"] == "word"


def test_environment_has_every_setting(repo: str) -> None:
    found = load(repo, UWF_CLAUDE_MAX_TURNS="3", UWF_CLAUDE_PERMISSION="", UWF_CODEX_ARGS="-x")

    assert found == {"model": "sonnet", "timeout": "9", "maxturns": "3"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store of a user with a home."""
    environ = {"GIT_CONFIG_NOSYSTEM": "1", "HOME": str(tmp_path)}
    return create_store(str(tmp_path / "store.git"), environ=environ)


def load_of(store: Store, name: str, value: str, **environ: str) -> dict[str, str]:
    """Load the settings when the store's own config sets one."""
    set_config(f"{store.path}/config", name, value)
    adapter = name.split(".")[1]
    sealed = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "UWF_REPO": store.path,
        "HOME": os.path.dirname(store.path),
    }
    return load_settings(adapter, "reviewer", environ=sealed | environ, words={})


@pytest.mark.parametrize(
    "name",
    [
        "uwf.claude.program",
        "uwf.claude.args",
        "uwf.claude.permission",
        "uwf.claude.env",
        "uwf.claude.reviewer.args",
        "uwf.react.shell",
        "uwf.cli.command",
        "uwf.llm.url",
        "uwf.llm.keyEnv",
        "uwf.extractor.key-env",
    ],
)
def test_store_alone_does_not_say_what_runs_or_where_a_key_goes(store: Store, name: str) -> None:
    with refuses("setting-not-trusted") as caught:
        load_of(store, name, "evil --all")

    assert "evil --all" in caught.value.message
    assert f"uwf agent trust --setting {normal_name(name)}" in str(caught.value.hint)
    assert caught.value.exit_status == 1
    trust_agents(store, [describe_command(name, "evil --all")], os.getcwd())
    assert "evil --all" in load_of(store, name, "evil --all").values()
    with refuses("setting-not-trusted"):
        load_of(store, name, "evil --other")


def test_users_own_value_needs_no_trust(store: Store, tmp_path: Path) -> None:
    user = tmp_path / "user"
    user.write_text('[uwf "claude"]\n\targs = --fast\n')
    mine = {"GIT_CONFIG_GLOBAL": str(user)}

    assert load_of(store, "uwf.claude.model", "opus", **mine) == {"model": "opus", "args": "--fast"}
    assert load_of(store, "uwf.claude.args", "--fast", **mine)["args"] == "--fast"
    assert load_of(store, "uwf.claude.args", "--bad", UWF_CLAUDE_ARGS="--mine")["args"] == "--mine"


def test_program_is_trusted_for_the_file_that_it_means(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "claude").write_text("#!/bin/sh\n")
    listed = describe_command("uwf.claude.program", "./claude")
    trust_agents(store, [listed], str(tmp_path / "here"))

    monkeypatch.chdir(tmp_path / "here")
    assert load_of(store, "uwf.claude.program", "./claude") == {"program": "./claude"}
    monkeypatch.chdir(tmp_path / "there")
    with refuses("setting-not-trusted"):
        load_of(store, "uwf.claude.program", "./claude")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], {}),
        (["--model", "opus"], {"model": "opus"}),
        (["--model=opus=1", "--args", "--x"], {"model": "opus=1", "args": "--x"}),
        (["make test", "--timeout=5"], {"command": "make test", "timeout": "5"}),
    ],
)
def test_words_are_settings(words: list[str], found: dict[str, str]) -> None:
    assert parse_words(words, keys=tuple(KEYS), word="command") == found


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--mdoel", "opus"], "no setting is called --mdoel"),
        (["--model"], "--model needs a value"),
        (["opus"], "unexpected word opus"),
    ],
)
def test_other_words_are_refused(words: list[str], told: str) -> None:
    with pytest.raises(BadUsage, match=told) as caught:
        parse_words(words, keys=tuple(KEYS), word=None)

    assert "--model" in (caught.value.hint or "")


def test_seconds_are_numbers_above_nothing() -> None:
    assert parse_seconds({"timeout": "2.5"}, "timeout") == 2.5
    assert parse_seconds({"timeout": "1e11"}, "timeout") == 365 * 24 * 3600
    assert parse_seconds({}, "timeout") is None
    for text in ("0", "-1", "inf", "nan", "ten"):
        with pytest.raises(BadUsage, match="timeout"):
            parse_seconds({"timeout": text}, "timeout")
