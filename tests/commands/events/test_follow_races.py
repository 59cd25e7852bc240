"""`uwf events --follow` beside 10,000 transitions: none is missed, none comes twice."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from commands.crowd import at_once
from commands.world import World
from conftest import Draws

from uwf_git.commands.admin import gc_store
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.history import walk_history

WRITERS = 4
TRANSITIONS_EACH = 250
MOST_MIB = 200


def test_followers_miss_nothing_and_tell_nothing_twice(
    world: World, tmp_path: Path, draws: Draws
) -> None:
    world.put()
    threads = [world.start() for _ in range(WRITERS)]
    begun = commits_of(world, threads[0])
    # Nobody reads what the first one prints until the end: it waits, as for a slow reader.
    slow = follow(world, subprocess.PIPE, "--since", begun[0])
    with (tmp_path / "one").open("wb") as file:
        quick = follow(world, file, threads[0], "--since", begun[0])
    for _number in draws.rounds(4):
        told = at_once(WRITERS, lambda at: write(world, threads[at]))
        assert told == [TRANSITIONS_EACH] * WRITERS
        gc_store(world.store, world.caller.environ)
    for thread in threads:
        world.kill(thread)
    stories = {thread: commits_of(world, thread) for thread in threads}
    # The one thread has ended, and so does who follows it.
    errors = quick.communicate()[1]
    assert quick.returncode == 0, errors
    check(tell((tmp_path / "one").read_bytes()), {threads[0]: stories[threads[0]][1:]})
    heard = listen(slow, {story[-1] for story in stories.values()})
    check(heard, {**stories, threads[0]: stories[threads[0]][1:]})
    print(f"{sum(map(len, stories.values()))} transitions, 2 followers")  # noqa: T201 - for `pytest -rA`


def write(world: World, thread: ThreadId) -> int:
    """Change a thread many times."""
    for number in range(TRANSITIONS_EACH):
        if number % 50 == 0:
            world.reopen()
        world.patch(thread, {"n": number})
    return TRANSITIONS_EACH


def commits_of(world: World, thread: ThreadId) -> list[str]:
    """List the commits of a thread, the oldest first."""
    world.reopen()
    tip = get_head(world.store, thread).commit
    return [str(each.commit.oid) for each in walk_history(world.store, tip)][::-1]


def follow(world: World, out: Any, *words: str) -> "subprocess.Popen[bytes]":
    """Start a process that follows the events."""
    return subprocess.Popen(
        [sys.executable, "-m", "uwf_git", "events", "--follow", *words],
        env={**os.environ, "UWF_REPO": world.store.path},
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.PIPE,
    )


def listen(process: "subprocess.Popen[bytes]", last: set[str]) -> list[dict[str, Any]]:
    """Read the events until all the *last* commits were told of; then interrupt the process."""
    assert process.stdout is not None
    lines = []
    while last:
        lines.append(process.stdout.readline())
        last.discard(commit_of(json.loads(lines[-1])))
    status = Path(f"/proc/{process.pid}/status").read_text()
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate()
    assert process.returncode == 130, errors
    assert int(status.partition("VmHWM:")[2].split()[0]) < MOST_MIB * 1024
    return tell(b"".join(lines) + rest)


def tell(printed: bytes) -> list[dict[str, Any]]:
    """Return the events that were printed."""
    return [json.loads(line) for line in printed.splitlines()]


def check(events: list[dict[str, Any]], stories: Mapping[ThreadId, Sequence[str]]) -> None:
    """Check that each event came once, and of each thread the oldest first."""
    names = [each["id"] for each in events]
    assert len(set(names)) == len(names)
    for thread, commits in stories.items():
        told = [commit_of(each) for each in events if each["taskId"] == thread]
        assert list(dict.fromkeys(told)) == list(commits)
    assert {each["taskId"] for each in events} == set(stories)


def commit_of(event: dict[str, Any]) -> str:
    """Return the commit that an event is about."""
    return str(event["id"]).partition("-")[0]
