"""Readers of messages other than `git log`'s trailers are not fooled either."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest
from interop.commits import REF, chain_commits
from interop.hostile import forged
from store.story import COMMITTER

from uwf_git.store.objects.commit import build_message, parse_trailers

Git = Callable[..., str]

# The role is one that a workflow can have: `git interpret-trailers` stops at a line that begins
# with `---`, and finds nothing.
MESSAGES = [
    build_message(
        "developer",
        words.said,
        body=words.body,
        trailers=[
            ("Uwf-Status", "ready"),
            ("Uwf-Role", "developer"),
            ("Uwf-Agent", words.agent),
            ("Uwf-Format", "2"),
        ],
    )
    for words in forged()
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store whose every message tries to forge something."""
    commits = [(COMMITTER, message) for message in MESSAGES]
    return Path(chain_commits(tmp_path_factory.mktemp("forged"), commits).path)


def test_interpret_trailers_finds_what_we_find(git: Git, tmp_path: Path) -> None:
    for message in MESSAGES:
        parsed = git("interpret-trailers", "--parse", cwd=tmp_path, stdin=message)
        lines = [line.partition(": ") for line in parsed.splitlines()]
        found = [(name, unquote(value)) for name, _colon, value in lines]
        assert found == list(parse_trailers(message).items()), message


def test_grep_finds_no_line_that_an_agent_wrote(git: Git, path: Path) -> None:
    count = ("rev-list", "--count", REF)
    assert git(*count, "--grep=^Uwf-Status: completed", cwd=path) == "0\n"
    assert git(*count, "--grep=^Uwf-Status: ready$", cwd=path) == f"{len(MESSAGES)}\n"


def test_git_keeps_every_message_as_it_is(git: Git, path: Path) -> None:
    log = git("log", "-z", "--reverse", "--format=%B", REF, cwd=path)
    assert log.removesuffix("\0").split("\0") == [message.decode() for message in MESSAGES]
