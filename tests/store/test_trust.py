import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fresh_store import fresh_store
from hypothesis import example, given
from hypothesis import strategies as st
from refusing import refuses
from store.conftest import Git
from store.story import AGENT, Story, signed

from uwf_git.store.git.config import add_config, set_config
from uwf_git.store.store import Store, open_store
from uwf_git.store.trust import (
    NAME,
    OLD_NAME,
    describe_command,
    find_meant_files,
    is_set_by_store,
    is_trusted,
    list_formerly_trusted,
    list_trusted,
    trust_agents,
    untrust_agents,
)
from uwf_git.store.workflows import SourceFiles, add_version

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
    """Open the store again, as the next process of its user would."""
    return open_store(store.path, environ=os.environ)


@pytest.fixture
def store() -> Store:
    return reopened(fresh_store())


def list_file(store: Store) -> Path:
    assert store.trust_file is not None
    return Path(store.trust_file)


def allowed(store: Store) -> list[dict[str, Any] | None]:
    return [each.agent for each in list_trusted(reopened(store))]


@pytest.mark.parametrize(
    "change",
    [
        {"command": "uwf-cursor --model y"},
        {"command": "uwf-cursor --model x "},
        {"protocol": "positional"},
        {"timeout": 61},
        {"env": {"A": "1", "B": "2", "LD_PRELOAD": "/tmp/evil.so"}},
        {"env": {"A": "2", "B": "1"}},
    ],
    ids=str,
)
def test_any_difference_at_all_is_another_agent(store: Store, change: dict[str, Any]) -> None:
    trust_agents(store, [AGENT_CONFIG], None)
    other = AGENT_CONFIG | change
    assert not is_trusted(reopened(store), other, None)
    trust_agents(store, [other], None)
    assert is_trusted(reopened(store), other, None)
    assert is_trusted(reopened(store), AGENT_CONFIG, None)


def test_the_list_is_the_user_s_and_the_store_stays_as_it_is(store: Store) -> None:
    before = Path(store.path, "config").read_bytes()
    trust_agents(store, [AGENT_CONFIG], None)
    assert Path(store.path, "config").read_bytes() == before
    assert list_file(store).is_relative_to(os.environ["XDG_STATE_HOME"])


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
def test_any_command_is_kept_whole_and_can_go_again(store: Store, git: Git, command: str) -> None:
    agent = {"command": command, "env": {command: command}}
    trust_agents(store, [AGENT_CONFIG], None)
    before = list_file(store).read_text()
    trust_agents(store, [agent], None)
    told = git("config", "--null", "--file", list_file(store), "--get-all", NAME, cwd=Path.home())
    written = [json.loads(text)["agent"] for text in told.split("\0")[:-1]]
    assert written == [AGENT_CONFIG, agent] == allowed(store)
    assert is_trusted(reopened(store), agent, None)
    assert len(untrust_agents(store, command=command)) == 1
    assert list_file(store).read_text() == before


@given(known=st.lists(agents), asked=agents)
@example(known=[{"command": "\0/x a/\0"}], asked={"command": ""})
def test_exactly_what_was_allowed_is_trusted(
    known: list[dict[str, Any]], asked: dict[str, Any]
) -> None:
    store = reopened(fresh_store())
    trust_agents(store, known, store.path)
    assert all(is_trusted(store, agent, store.path) for agent in known)
    assert is_trusted(store, asked, store.path) == (asked in known)


def test_trust_in_one_store_is_none_in_another(store: Store) -> None:
    trust_agents(store, [AGENT_CONFIG], None)
    assert is_trusted(store, AGENT_CONFIG, None)
    assert not is_trusted(reopened(fresh_store()), AGENT_CONFIG, None)


def test_what_the_user_s_git_config_trusts_counts_but_not_the_store_s(
    store: Store, git: Git
) -> None:
    text = json.dumps(AGENT_CONFIG, sort_keys=True, separators=(",", ":"))
    git("config", "--add", OLD_NAME, text, cwd=Path(store.path))
    assert not is_trusted(reopened(store), AGENT_CONFIG, None)
    assert list_formerly_trusted(store) == [AGENT_CONFIG]
    git("config", "--global", "--add", OLD_NAME, text, cwd=Path(store.path))
    assert is_trusted(reopened(store), AGENT_CONFIG, None)


def test_long_one_in_the_user_s_git_config_is_known_by_its_digest(store: Store, git: Git) -> None:
    agent = {"command": "x" * 300}
    text = json.dumps(agent, separators=(",", ":"))
    digest = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    git("config", "--global", OLD_NAME, digest, cwd=Path(store.path))
    assert is_trusted(reopened(store), agent, None)
    assert not is_trusted(reopened(store), {"command": "x" * 301}, None)
    assert [(each.text, each.agent) for each in list_trusted(reopened(store))] == [(digest, None)]
    with refuses("still-trusted"):
        untrust_agents(reopened(store), command=digest)


def test_relative_path_in_the_user_s_git_config_is_trusted_nowhere(
    store: Store, git: Git, tmp_path: Path
) -> None:
    git("config", "--global", OLD_NAME, '{"command":"./agent"}', cwd=Path(store.path))
    (tmp_path / "agent").touch()
    assert not is_trusted(reopened(store), {"command": "./agent"}, str(tmp_path))


@pytest.mark.parametrize(
    "value",
    [
        "",
        "true",
        "{",
        "null",
        '{"command": "uwf-cursor --model x"}',
        '{"agent": {"command": "uwf-cursor --model x"}, "files": []}',
        '{"agent": "uwf-cursor --model x", "directory": "/", "files": []}',
    ],
)
def test_invalid_value_trusts_no_agent(store: Store, value: str) -> None:
    set_config(str(list_file(store)), NAME, value)
    assert list_trusted(store) == []
    trust_agents(reopened(store), [AGENT_CONFIG], None)
    assert allowed(store) == [AGENT_CONFIG]


def test_invalid_old_value_is_passed_over(store: Store) -> None:
    for value in ("", "true", "{", "null", "[]", '{"command": 1}', '{"command": "a"}'):
        add_config(f"{store.path}/config", OLD_NAME, value)
    assert list_formerly_trusted(store) == [{"command": "a"}]


def test_without_a_home_nothing_is_trusted(store: Store) -> None:
    homeless = open_store(store.path)
    assert not is_trusted(homeless, AGENT_CONFIG, None)
    with refuses("no-place-for-trust"):
        trust_agents(homeless, [AGENT_CONFIG], None)
    assert untrust_agents(homeless, agents=[AGENT_CONFIG]) == []


def test_listener_is_not_trusted_as_an_agent(store: Store) -> None:
    trust_agents(store, [describe_command("uwf.onEvent", "log-it")], None)
    assert not is_trusted(store, describe_command("uwf.agent", "log-it"), None)
    assert describe_command("uwf.agent", "log-it") == {"command": "log-it"}


def test_setting_of_the_store_is_told_from_the_user_s(store: Store, git: Git) -> None:
    assert not is_set_by_store(store, "uwf.agent")
    git("config", "--global", "uwf.agent", "mine", cwd=Path(store.path))
    assert not is_set_by_store(reopened(store), "uwf.agent")
    git("config", "uwf.agent", "theirs", cwd=Path(store.path))
    assert is_set_by_store(reopened(store), "uwf.agent")
    git("config", "--global", "uwf.agent", "theirs", cwd=Path(store.path))
    assert not is_set_by_store(reopened(store), "uwf.agent")


def test_what_was_fetched_is_not_trusted(
    store: Store, clock: Callable[[], int], git: Git, tmp_path: Path
) -> None:
    trust_agents(store, [AGENT.payload], None)
    story = Story(store, clock)
    added = ("demo", story.snapshot.get_start(), ())
    add_version(store, None, added=added, source=SourceFiles(b""), signing=signed(clock()))
    git("clone", "--quiet", "--mirror", store.path, tmp_path / "clone.git", cwd=tmp_path)
    clone = open_store(str(tmp_path / "clone.git"), environ=os.environ)
    assert clone.refs.names("refs/threads/") == [story.thread]
    assert not is_trusted(clone, AGENT.payload, None)


ADD = """
import os, sys
from uwf_git.store.store import open_store
from uwf_git.store.trust import trust_agents
for number in range(5):
    store = open_store(sys.argv[1], environ=os.environ)
    trust_agents(store, [{"command": f"{sys.argv[2]} {number}"}], None)
"""


def test_parallel_trust_loses_no_agent(store: Store) -> None:
    adding = [
        subprocess.Popen([sys.executable, "-c", ADD, store.path, str(which)]) for which in range(3)
    ]
    assert [process.wait() for process in adding] == [0] * 3
    found = [each["command"] for each in allowed(store) if each is not None]
    assert sorted(found) == [f"{which} {number}" for which in range(3) for number in range(5)]
    assert [each.name for each in list_file(store).parent.glob("*.lock")] == []


def test_a_command_goes_with_all_its_settings(store: Store) -> None:
    long = {"command": "uwf-cursor --model x", "env": {"A": "x" * 500}}
    bare = {"command": "uwf-cursor --model x"}
    trust_agents(store, [AGENT_CONFIG, bare, long, {"command": "other"}], None)
    gone = untrust_agents(store, command="uwf-cursor --model x")
    assert [each.agent for each in gone] == [AGENT_CONFIG, bare, long]
    assert allowed(store) == [{"command": "other"}]


def test_trust_of_the_user_is_reported_and_unchanged(store: Store, git: Git) -> None:
    text = json.dumps({"command": "everywhere"}, separators=(",", ":"))
    git("config", "--global", OLD_NAME, text, cwd=Path(store.path))
    assert [(each.agent, each.is_own) for each in list_trusted(reopened(store))] == [
        ({"command": "everywhere"}, False)
    ]
    trust_agents(store, [{"command": "everywhere"}], None)
    for _again in range(2):
        with refuses("still-trusted"):
            untrust_agents(reopened(store), command="everywhere")
    assert not list_file(store).exists() or not list_file(store).read_text().count("everywhere")


def test_file_above_the_directory_is_the_one_that_is_meant(store: Store, tmp_path: Path) -> None:
    for project in ("mine", "theirs"):
        for folder in (".git", ".workflows", "agents", "deep"):
            (tmp_path / project / folder).mkdir(parents=True)
        (tmp_path / project / "agents/all").touch()
    agent = {"command": "agents/all"}

    trust_agents(store, [agent], str(tmp_path / "mine/deep"))

    assert [each.files for each in list_trusted(store)] == [(str(tmp_path / "mine/agents/all"),)]
    assert is_trusted(reopened(store), agent, str(tmp_path / "mine"))
    assert not is_trusted(store, agent, str(tmp_path / "theirs/deep"))
    assert not is_trusted(store, agent, str(tmp_path / "theirs"))


def test_what_is_allowed_no_more_is_not_trusted_by_anybody(store: Store) -> None:
    other = {"command": "other"}
    trust_agents(store, [AGENT_CONFIG, other], None)
    assert [each.agent for each in untrust_agents(store, agents=[AGENT_CONFIG])] == [AGENT_CONFIG]
    for each in (store, reopened(store)):
        assert not is_trusted(each, AGENT_CONFIG, None)
        assert is_trusted(each, other, None)


# A command is trusted for the files that it means, not for its words.

__all__ = ["store"]


def write_file(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return str(path)


@pytest.mark.parametrize(
    "command",
    [
        "agents/all",
        "sh all.sh",
        "python3 -c 'import x' --script=agents/all",
        "uwf-shell 'cd /; sh all.sh>log'",
        "uwf-cli 'sh -c \"./agents/all\"'",
        "sub/../agents/all",
        "'open agents/all",
    ],
)
def test_same_words_in_another_directory_are_another_agent(
    store: Store, tmp_path: Path, command: str
) -> None:
    for project in ("mine", "theirs"):
        write_file(tmp_path / project / "agents" / "all")
        write_file(tmp_path / project / "all.sh")
        (tmp_path / project / "sub").mkdir()
    agent = {"command": command}
    trust_agents(store, [agent], str(tmp_path / "mine"))
    assert is_trusted(reopened(store), agent, str(tmp_path / "mine"))
    assert not is_trusted(reopened(store), agent, str(tmp_path / "theirs"))
    assert not is_trusted(reopened(store), agent, None)
    trust_agents(store, [agent], str(tmp_path / "theirs"))
    assert is_trusted(reopened(store), agent, str(tmp_path / "theirs"))


@pytest.mark.parametrize("value", ["lib/evil.so", "/usr/lib:lib/evil.so", "./lib/evil.so"])
def test_files_in_an_environment_count(store: Store, tmp_path: Path, value: str) -> None:
    agent = {"command": "cc", "env": {"LD_PRELOAD": value}}
    trust_agents(store, [agent], str(tmp_path / "mine"))
    assert is_trusted(store, agent, str(tmp_path / "theirs"))
    write_file(tmp_path / "theirs" / "lib" / "evil.so")
    assert not is_trusted(store, agent, str(tmp_path / "theirs"))


@pytest.mark.parametrize(
    ("command", "entries"),
    [
        ("uwf-claude -p", 1),
        ("/opt/agent x", 2),
        ("make test", 2),
        ("sh /opt/all.sh", 1),
        ("a b", 2),
    ],
)
def test_command_without_files_of_its_directory_may_run_anywhere(
    store: Store, tmp_path: Path, command: str, entries: int
) -> None:
    """Where it is trusted again, a word of it may become a file, until the directory goes."""
    (tmp_path / "theirs" / "b").mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    trust_agents(store, [{"command": command}], str(tmp_path / "mine"))
    assert is_trusted(reopened(store), {"command": command}, str(tmp_path / "theirs"))
    for _again in range(2):
        trust_agents(store, [{"command": command}], str(tmp_path / "theirs"))
    assert len(list_trusted(reopened(store))) == entries
    (tmp_path / "mine").rmdir()
    trust_agents(store, [{"command": command}], str(tmp_path))
    assert len(list_trusted(reopened(store))) == entries


def test_file_that_appears_later_is_trusted_where_the_command_was(
    store: Store, tmp_path: Path
) -> None:
    """The agent before may write what the next one reads."""
    agent = {"command": "cat report.txt"}
    mine, theirs = str(tmp_path / "mine"), str(tmp_path / "theirs")
    trust_agents(store, [agent], mine)
    for place in (mine, theirs):
        write_file(Path(place, "report.txt"))
    assert is_trusted(store, agent, mine)
    assert not is_trusted(store, agent, theirs)


def test_file_that_appears_later_is_trusted_in_each_directory_of_the_command(
    store: Store, tmp_path: Path
) -> None:
    agent = {"command": "uwf-shell 'date > report.txt'"}
    for project in ("mine", "theirs"):
        trust_agents(store, [agent], str(tmp_path / project))
        write_file(tmp_path / project / "report.txt")
        assert is_trusted(reopened(store), agent, str(tmp_path / project))


@pytest.mark.parametrize("command", ["uwf-shell 'mv a/x b/x.txt'", "mv a/x b/x", "mv a/x b/c/../x"])
def test_files_of_a_trusted_command_come_and_go(store: Store, tmp_path: Path, command: str) -> None:
    old, new = tmp_path / "a/x", Path(tmp_path, *command.strip("'").split()[-1:])
    (tmp_path / "b/c").mkdir(parents=True)
    write_file(old)
    trust_agents(store, [{"command": command}], str(tmp_path))
    old.rename(new)
    assert is_trusted(store, {"command": command}, str(tmp_path))
    assert not is_trusted(store, {"command": command}, str(tmp_path / "b"))


def test_file_that_takes_the_place_of_a_trusted_one_is_not_trusted(
    store: Store, tmp_path: Path
) -> None:
    """The project's file is found from its folders, until one of them has a file of that name."""
    agent, folder = {"command": "agents/all --log out.txt"}, tmp_path / "sub"
    (tmp_path / ".git").mkdir()
    (tmp_path / ".workflows").mkdir()
    write_file(tmp_path / "agents" / "all")
    log = Path(write_file(folder / "out.txt"))
    trust_agents(store, [agent], str(folder))
    log.unlink()
    assert is_trusted(store, agent, str(folder))

    write_file(folder / "agents" / "all")
    assert not is_trusted(store, agent, str(folder))
    trust_agents(store, [agent], str(folder))
    assert is_trusted(reopened(store), agent, str(folder))


def test_link_to_a_directory_does_not_stand_for_it(store: Store, tmp_path: Path) -> None:
    """`..` behind a link leads to where the kernel goes, not to where the words do."""
    write_file(tmp_path / "mine" / "agent")
    write_file(tmp_path / "elsewhere" / "agent")
    (tmp_path / "elsewhere" / "deep").mkdir()
    (tmp_path / "mine" / "deep").symlink_to(tmp_path / "elsewhere" / "deep")
    found = find_meant_files({"command": "deep/../agent"}, str(tmp_path / "mine"))
    assert found == (str(tmp_path / "elsewhere" / "agent"),)
