"""Print what a warm step opens: the events of one step by a function, as one JSON list."""

import json
import subprocess
import sys
import time
from pathlib import Path

from uwf_git import PlayerResult, TaskRuntime

_WORKFLOW = """\
name: loop
roles:
  worker: &work
    systemPrompt: Work.
    outputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}
  other: *work
moderator:
  - {from: $START, to: worker}
  - {from: worker, to: other}
  - {from: other, to: $END, condition: meta.n = 2}
  - {from: other, to: worker}
"""
_EVENTS = {"open", "os.listdir", "os.scandir", "os.mkdir"}

_events: list[tuple[str, str]] = []
_is_watched = False


def _watch(event: str, facts: tuple[object, ...]) -> None:
    # An integer is a file that is open already.
    if _is_watched and event in _EVENTS and not isinstance(facts[0], int):
        _events.append((event, str(facts[0])))


def _play(_context: object) -> PlayerResult:
    return PlayerResult({"n": 1}, "x" * 1000)


def main() -> None:
    """Take steps until all that is kept is old enough, then watch one that unites no packs."""
    global _is_watched  # noqa: PLW0603 (an audit hook cannot be removed)
    store = str(Path("store.git").absolute())
    runtime = TaskRuntime(store, create=True, players={"worker": _play, "other": _play})
    task = runtime.start(_WORKFLOW, "Go on.")
    task.step()
    subprocess.run(["git", "-C", store, "pack-refs", "--all"], check=True)
    sys.addaudithook(_watch)
    began, steps = time.monotonic(), 0
    # The watched step is one of `worker`: no condition follows it.
    while time.monotonic() - began < 0.2 or steps % 2 == 0:
        task.step()
        steps += 1
    while not _events or any(path.endswith("/locks/unite") for _event, path in _events):
        _events.clear()
        _is_watched = True
        task.step()
        _is_watched = False
        task.step()
    sys.stdout.write(json.dumps([(event, path.removeprefix(store)) for event, path in _events]))


main()
