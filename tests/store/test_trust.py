import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fresh_store import fresh_store
from hypothesis import given
from hypothesis import strategies as st
from store.conftest import Git
from store.story import AGENT, Story, signed

from uwf_git.store.git.config import set_config
from uwf_git.store.store import Store, open_store
from uwf_git.store.trust import (
    NAME,
    StillTrusted,
    is_trusted,
    list_trusted,
    trust_agents,
    untrust_agents,
)
from uwf_git.store.workflows.registry import add_version
from uwf_git.store.workflows.tree import SourceFiles

AGENT_CONFIG: dict[str, Any] = {
    "command": "uwf-cursor --model x",
    "protocol": "flags",
    "timeout": 60,
    "retries": 2,
    "env": {"A": "1", "B": "2"},
}

texts = st.text(st.characters(exclude_categories=["Cs"]))
agents = st.fixed_dictionaries(
    {"command": texts}, optional={"env": st.dictionaries(texts, texts), "timeout": st.integers()}
)


def reopened(store: Store) -> Store:
    """Open the store again, as the next process would."""
    return open_store(store.path)


def allowed(store: Store) -> list[str]:
    return reopened(store).config.get_all(NAME)


def test_nothing_is_trusted_at_first(store: Store) -> None:
    assert not is_trusted(store, AGENT_CONFIG)


def test_what_was_allowed_is_trusted_at_once_and_by_the_next_process(store: Store) -> None:
    trust_agents(store, [AGENT_CONFIG])
    assert is_trusted(store, AGENT_CONFIG)
    assert is_trusted(reopened(store), AGENT_CONFIG)


@pytest.mark.parametrize(
    "change",
    [
        {"command": "uwf-cursor --model y"},
        {"command": "uwf-cursor --model x "},
        {"command": "UWF-CURSOR --model x"},
        {"protocol": "positional"},
        {"timeout": 61},
        {"retries": 3},
        {"env": {"A": "1"}},
        {"env": {"A": "1", "B": "2", "LD_PRELOAD": "/tmp/evil.so"}},
        {"env": {"A": "2", "B": "1"}},
        {"env": {"a": "1", "B": "2"}},
        {"env": {}},
        {"later": "unknown"},
    ],
    ids=str,
)
def test_any_difference_at_all_is_another_agent(store: Store, change: dict[str, Any]) -> None:
    trust_agents(store, [AGENT_CONFIG])
    other = AGENT_CONFIG | change
    assert not is_trusted(reopened(store), other)
    trust_agents(store, [other])
    assert is_trusted(reopened(store), other)
    assert is_trusted(reopened(store), AGENT_CONFIG)


@pytest.mark.parametrize("field", sorted(AGENT_CONFIG))
def test_a_field_that_is_missing_makes_another_agent(store: Store, field: str) -> None:
    trust_agents(store, [AGENT_CONFIG])
    less = {name: value for name, value in AGENT_CONFIG.items() if name != field}
    assert not is_trusted(reopened(store), less)


def test_the_order_of_keys_means_nothing(store: Store) -> None:
    trust_agents(store, [AGENT_CONFIG])
    turned = dict(reversed(AGENT_CONFIG.items()))
    turned["env"] = dict(reversed(AGENT_CONFIG["env"].items()))
    assert is_trusted(reopened(store), turned)
    trust_agents(reopened(store), [turned])
    assert len(allowed(store)) == 1


def test_what_is_allowed_already_costs_nothing(store: Store) -> None:
    trust_agents(store, [AGENT_CONFIG, AGENT_CONFIG])
    config = Path(store.path, "config")
    before = config.stat().st_ino, config.read_bytes()
    trust_agents(store, [AGENT_CONFIG])
    trust_agents(reopened(store), [AGENT_CONFIG])
    assert (config.stat().st_ino, config.read_bytes()) == before
    assert len(allowed(store)) == 1


def test_trusting_no_agent_writes_nothing(store: Store) -> None:
    before = Path(store.path, "config").read_bytes()
    trust_agents(store, [])
    assert Path(store.path, "config").read_bytes() == before


ODD = [
    "say 'hi' \"there\"",
    "back\\slash\\n \\\\ \\",
    "# no comment ; none either",
    " spaces at both ends ",
    "line\nfeed\r\ttab",
    "ümläut 日本 🐟",
    "\x1b[31mred\x07\x7f",
    "[core]\n\tbare = false",
    "a = b",
    "x" * 20_000,
    "",
]


@pytest.mark.parametrize("command", ODD, ids=lambda command: repr(command[:20]))
def test_git_reads_the_config_whatever_the_command(store: Store, git: Git, command: str) -> None:
    agent = {"command": command, "env": {command: command}}
    trust_agents(store, [agent, AGENT_CONFIG])
    told = git("config", "--null", "--get-all", NAME, cwd=Path(store.path)).split("\0")
    # A long one stands there as its SHA-256, so that the config stays small.
    written = [json.loads(text) for text in told[:-1] if not text.startswith("sha256:")]
    assert written == [each for each in (agent, AGENT_CONFIG) if len(json.dumps(each)) < 200]
    assert len(told[:-1]) == 2
    assert max(map(len, told)) <= 200
    assert git("rev-parse", "--is-bare-repository", cwd=Path(store.path)) == "true\n"
    assert is_trusted(reopened(store), agent)


@given(known=st.lists(agents), asked=agents)
def test_exactly_what_was_allowed_is_trusted(
    known: list[dict[str, Any]], asked: dict[str, Any]
) -> None:
    store = fresh_store()
    trust_agents(store, known)
    assert all(is_trusted(store, agent) for agent in known)
    assert is_trusted(store, asked) == (asked in known)


def test_trust_in_one_store_is_none_in_another() -> None:
    store = fresh_store()
    trust_agents(store, [AGENT_CONFIG])
    assert is_trusted(store, AGENT_CONFIG)
    assert not is_trusted(fresh_store(), AGENT_CONFIG)


def test_values_set_with_git_config_count(store: Store, git: Git) -> None:
    text = json.dumps(AGENT_CONFIG, sort_keys=True, separators=(",", ":"))
    git("config", "--add", "UWF.trustedagent", text, cwd=Path(store.path))
    assert is_trusted(reopened(store), AGENT_CONFIG)
    git("config", "--unset-all", NAME, cwd=Path(store.path))
    assert not is_trusted(reopened(store), AGENT_CONFIG)


@pytest.mark.parametrize("value", ["", "true", "{", "null", '{"command": "uwf-cursor --model x"}'])
def test_invalid_value_trusts_no_agent(store: Store, value: str) -> None:
    set_config(f"{store.path}/config", NAME, value)
    assert not is_trusted(reopened(store), AGENT_CONFIG)
    trust_agents(reopened(store), [AGENT_CONFIG])
    assert is_trusted(reopened(store), AGENT_CONFIG)
    assert allowed(store)[0] == value


def test_other_settings_stay_as_they_are(store: Store, git: Git) -> None:
    config = Path(store.path, "config")
    config.write_text(config.read_text() + "# mine\n[user]\n\tname = Me ; and nobody else\n")
    before = config.read_text()
    trust_agents(reopened(store), [AGENT_CONFIG, {"command": "other"}])
    after = config.read_text().splitlines()
    assert [line for line in before.splitlines() if line not in after] == []
    assert git("config", "user.name", cwd=Path(store.path)) == "Me\n"


def test_a_worktree_trusts_what_its_repository_trusts(tmp_path: Path, git: Git) -> None:
    project, tree = tmp_path / "project", tmp_path / "tree"
    git("init", "--quiet", project, cwd=tmp_path)
    git("commit", "--quiet", "--allow-empty", "-m", "begin", cwd=project)
    git("worktree", "add", "--quiet", tree, cwd=project)
    trust_agents(open_store(str(tree)), [AGENT_CONFIG])
    assert is_trusted(open_store(str(project)), AGENT_CONFIG)


def test_what_was_fetched_is_not_trusted(
    store: Store, clock: Callable[[], int], git: Git, tmp_path: Path
) -> None:
    trust_agents(store, [AGENT.payload])
    story = Story(store, clock)
    added = ("demo", story.snapshot.get_start(), ())
    add_version(store, None, added=added, source=SourceFiles(b""), signing=signed(clock()))
    git("clone", "--quiet", "--mirror", store.path, tmp_path / "clone.git", cwd=tmp_path)
    clone = open_store(str(tmp_path / "clone.git"))
    assert clone.refs.names("refs/threads/") == [story.thread]
    assert not is_trusted(clone, AGENT.payload)


ADD = """
import sys
from uwf_git.store.store import open_store
from uwf_git.store.trust import trust_agents
for number in range(5):
    trust_agents(open_store(sys.argv[1]), [{"command": f"{sys.argv[2]} {number}"}])
"""


def test_parallel_trust_loses_no_agent(store: Store, git: Git) -> None:
    adding = [
        subprocess.Popen([sys.executable, "-c", ADD, store.path, str(which)]) for which in range(6)
    ]
    assert [process.wait() for process in adding] == [0] * 6
    found = [json.loads(text)["command"] for text in allowed(store)]
    assert sorted(found) == [f"{which} {number}" for which in range(6) for number in range(5)]
    assert git("config", "uwf.fsync", cwd=Path(store.path)) == "false\n"
    assert list(Path(store.path).glob("*.lock")) == []


def test_what_is_allowed_no_more_is_not_trusted_by_anybody(store: Store) -> None:
    other = {"command": "other"}
    trust_agents(store, [AGENT_CONFIG, other])
    gone = untrust_agents(store, agents=[AGENT_CONFIG])
    assert [each.agent for each in gone] == [AGENT_CONFIG]
    for each in (store, reopened(store)):
        assert not is_trusted(each, AGENT_CONFIG)
        assert is_trusted(each, other)


def test_a_command_goes_with_all_its_settings(store: Store) -> None:
    long = {"command": "uwf-cursor --model x", "env": {"A": "x" * 500}}
    bare = {"command": "uwf-cursor --model x"}
    trust_agents(store, [AGENT_CONFIG, bare, long, {"command": "other"}])
    gone = untrust_agents(store, command="uwf-cursor --model x")
    assert [each.agent for each in gone] == [AGENT_CONFIG, bare]
    # Of a long one only the digest is kept, which is its name then.
    digest = list_trusted(store)[0].text
    assert digest.startswith("sha256:")
    assert list_trusted(store)[0].agent is None
    assert len(untrust_agents(store, command=digest)) == 1
    assert [each.agent for each in list_trusted(reopened(store))] == [{"command": "other"}]


@pytest.mark.parametrize("command", ODD, ids=lambda command: repr(command[:20]))
def test_any_command_can_go_again_and_the_rest_stays(store: Store, git: Git, command: str) -> None:
    config = Path(store.path, "config")
    config.write_text(config.read_text() + "[uwf]\n\t# mine\n\tagent = a\n")
    store = reopened(store)
    trust_agents(store, [AGENT_CONFIG])
    before = config.read_text()
    trust_agents(store, [{"command": command}])
    assert len(untrust_agents(store, command=command)) == 1
    assert config.read_text() == before
    assert git("config", "uwf.agent", cwd=Path(store.path)) == "a\n"


def test_untrusting_no_agent_writes_nothing(store: Store) -> None:
    trust_agents(store, [AGENT_CONFIG])
    config = Path(store.path, "config")
    before = config.stat().st_ino, config.read_bytes()
    assert untrust_agents(store, command="other") == []
    assert untrust_agents(store, agents=[{"command": "other"}]) == []
    assert (config.stat().st_ino, config.read_bytes()) == before


def test_trust_of_the_user_is_reported_and_unchanged(store: Store, git: Git) -> None:
    text = json.dumps({"command": "everywhere"}, separators=(",", ":"))
    git("config", "--global", NAME, text, cwd=Path(store.path))
    mine = open_store(store.path, environ=os.environ)
    assert [(each.agent, each.is_own) for each in list_trusted(mine)] == [
        ({"command": "everywhere"}, False)
    ]
    trust_agents(store, [{"command": "everywhere"}])
    for _again in range(2):
        with pytest.raises(StillTrusted):
            untrust_agents(open_store(store.path, environ=os.environ), command="everywhere")
    assert allowed(store) == []


def test_an_opened_store_sees_what_it_untrusted() -> None:
    store = fresh_store()
    trust_agents(store, [AGENT_CONFIG, {"command": "other"}])
    assert len(untrust_agents(store, command="other")) == 1
    assert [(each.agent, each.is_own) for each in list_trusted(store)] == [(AGENT_CONFIG, True)]
