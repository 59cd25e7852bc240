"""A command is trusted for the files that it means, not for its words."""

from pathlib import Path

import pytest
from store.test_trust import reopened, store

from uwf_git.store.store import Store
from uwf_git.store.trust import find_meant_files, is_trusted, list_trusted, trust_agents

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
    "command", ["uwf-claude --model opus", "/opt/agent x", "make test", "sh /opt/all.sh", "a src"]
)
def test_command_without_files_of_its_directory_may_run_anywhere(
    store: Store, tmp_path: Path, command: str
) -> None:
    (tmp_path / "theirs" / "src").mkdir(parents=True)
    trust_agents(store, [{"command": command}], str(tmp_path / "mine"))
    assert is_trusted(reopened(store), {"command": command}, str(tmp_path / "theirs"))
    trust_agents(store, [{"command": command}], str(tmp_path / "theirs"))
    assert len(list_trusted(reopened(store))) == 1


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


def test_link_to_a_directory_does_not_stand_for_it(store: Store, tmp_path: Path) -> None:
    """`..` behind a link leads to where the kernel goes, not to where the words do."""
    write_file(tmp_path / "mine" / "agent")
    write_file(tmp_path / "elsewhere" / "agent")
    (tmp_path / "elsewhere" / "deep").mkdir()
    (tmp_path / "mine" / "deep").symlink_to(tmp_path / "elsewhere" / "deep")
    found = find_meant_files({"command": "deep/../agent"}, str(tmp_path / "mine"))
    assert found == (str(tmp_path / "elsewhere" / "agent"),)
