from pathlib import Path

import pytest

from uwf_git.agentkit.settings import (
    KEYS,
    choose_permission,
    load_settings,
    parse_seconds,
    parse_words,
    split_args,
)
from uwf_git.errors import BadUsage

CONFIG = """\
[uwf "claude"]
    model = sonnet
    permission = plan
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
    (tmp_path / "config").write_text(CONFIG)
    return str(tmp_path)


def load(repo: str = "", role: str = "developer", **environ: str) -> dict[str, str]:
    words = {"model": environ.pop("word")} if "word" in environ else {}
    sealed = {"GIT_CONFIG_NOSYSTEM": "1", "UWF_REPO": repo}
    return load_settings("claude", role, environ=sealed | environ, words=words)


def test_without_any_there_are_none() -> None:
    assert load() == {}


def test_store_says_what_counts_for_all_roles(repo: str) -> None:
    assert load(repo) == {"model": "sonnet", "permission": "plan"}


@pytest.mark.parametrize(("role", "model"), [("reviewer", "opus"), ("qa.v2", "haiku")])
def test_role_may_have_its_own(repo: str, role: str, model: str) -> None:
    assert load(repo, role) == {"model": model, "permission": "plan"}


def test_more_specific_one_wins(repo: str) -> None:
    assert load("", UWF_MODEL="all")["model"] == "all"
    assert load(repo, "reviewer", UWF_MODEL="all")["model"] == "opus"
    assert load(repo, "reviewer", UWF_CLAUDE_MODEL="mine")["model"] == "mine"
    assert load(repo, "reviewer", UWF_CLAUDE_MODEL="mine", word="word")["model"] == "word"


def test_environment_has_every_setting(repo: str) -> None:
    found = load(repo, UWF_CLAUDE_MAX_TURNS="3", UWF_CLAUDE_PERMISSION="", UWF_CODEX_ARGS="-x")

    assert found == {"model": "sonnet", "permission": "plan", "max-turns": "3"}


def test_users_own_config_counts_below_the_stores(repo: str, tmp_path: Path) -> None:
    user = tmp_path / "user"
    user.write_text('[uwf "claude"]\n\tmodel = mine\n\targs = --fast\n')

    found = load(repo, GIT_CONFIG_GLOBAL=str(user))

    assert (found["model"], found["args"]) == ("sonnet", "--fast")


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


def test_second_word_is_refused() -> None:
    with pytest.raises(BadUsage, match="unexpected word test"):
        parse_words(["make", "test"], keys=(), word="command")


def test_seconds_are_numbers_above_nothing() -> None:
    assert parse_seconds({"timeout": "2.5"}, "timeout") == 2.5
    assert parse_seconds({}, "timeout") is None
    for text in ("0", "-1", "inf", "nan", "ten"):
        with pytest.raises(BadUsage, match="timeout"):
            parse_seconds({"timeout": text}, "timeout")


def test_arguments_are_split_as_a_shell_would() -> None:
    assert split_args({"args": "--add-dir '/a b' -x"}) == ("--add-dir", "/a b", "-x")
    assert split_args({}) == ()
    with pytest.raises(BadUsage, match="args"):
        split_args({"args": "'open"})


def test_first_permission_is_the_default() -> None:
    known = {"edit": (), "plan": ("--plan",), "ask": ()}

    assert choose_permission({}, known) == choose_permission({"permission": ""}, known) == "edit"
    assert choose_permission({"permission": "ask"}, known) == "ask"


def test_unknown_permission_is_reported_with_the_known_ones() -> None:
    with pytest.raises(BadUsage) as caught:
        choose_permission({"permission": "all"}, ("edit", "plan", "ask"))

    assert caught.value.message == "permission is 'all'"
    assert caught.value.hint == "permission=edit, or plan, ask"
