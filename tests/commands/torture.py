"""Commands by chance in several processes, some of which are killed at a moment by chance.

Each run of an agent writes lines to a file outside of the stores: when it begins, and when it has
printed its answer. Its name is in its log and its answer, so each can be found again in a store.
"""

import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from uwf_git.cli.app.lazy_group import run
from uwf_git.cli.uwf import UWF
from uwf_git.model.names import Oid
from uwf_git.store.store import open_store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.threads.history import KEPT, walk_history

WORKFLOW = """\
name: count
roles:
  writer: {description: Writes., outputSchema: {type: object}}
  checker: {description: Checks., outputSchema: {type: object}}
  judge: {description: Judges., outputSchema: {type: object}}
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: checker}
  - {from: checker, to: writer, when: state.again = true and depth < 9}
  - {from: checker, to: judge}
  - {from: judge, to: writer, when: depth < 5}
  - {from: judge, to: $END}
"""

MORE = "roles: {checker: {description: 'Checks again.', outputSchema: {type: object}}}\n"

AGENT = """\
name=x$$n$(date +%s%N)x
echo "$name" >&2
echo "began $name $$" >>RUNS
case $name in *[2468]x) sleep 0.0$(($$ % 10)) ;; *[13]x) sleep 0.3 ;; esac
printf '{"meta": {"run": "%s"}, "content": "Done."}' "$name"
echo "finished $name" >>RUNS
exit 0
"""

NAME = re.compile(r"x\d+n\d+x")
LONGEST_S = 120
FINE = (0, 1, 3, 4, 130)


class Command(NamedTuple):
    """A command that runs."""

    words: tuple[str, ...]
    pid: int
    ended: int
    """A descriptor that can be read once it has ended."""

    said: Path
    """What it prints: standard output; beside it, the errors."""

    dies_at: float | None
    """When it is killed, if it still runs."""


class Place:
    """A store, and what has been seen of it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.removed: set[tuple[str, str]] = set()
        """The refs and commits of threads before somebody removed them."""

        self.seen: dict[str, set[str]] = {}
        """Each commit at which a thread was seen."""

        self.promised: set[str] = set()
        """The commits and steps that commands said they made."""

    def refs(self, *below: str) -> dict[str, str]:
        """Return the refs below some folders."""
        listed = self.git("for-each-ref", "--format=%(refname) %(objectname)", *below)
        return dict(line.split() for line in listed.splitlines())

    def git(self, *words: str, given: str = "") -> str:
        """Run git, which must not fail."""
        ran = subprocess.run(
            ["git", *words],
            cwd=self.path,
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        assert ran.returncode == 0, (words, ran.stderr)
        return ran.stdout

    def threads(self, prefix: str = ACTIVE) -> list[str]:
        """List the threads, active ones unless *prefix* says otherwise."""
        found = self.refs(prefix)
        for name, commit in found.items():
            self.seen.setdefault(name.removeprefix(prefix), set()).add(commit)
        return [name.removeprefix(prefix) for name in found]

    def before_removing(self, thread: str) -> None:
        """Note what a thread has that somebody is about to remove."""
        self.removed |= set(self.refs(ARCHIVE + thread, f"{KEPT}{thread}/").items())

    def tips(self, *below: str) -> list[tuple[str, str]]:
        """List the refs below some folders, and those that somebody removed, with their commits."""
        return [*self.refs(*below).items(), *self.removed]


class Torture:
    """Processes that run commands on stores, and the counts of what they did."""

    def __init__(self, place: Path, chance: random.Random, stores: Mapping[str, str]) -> None:
        self.place, self.chance = place, chance
        self.stores = {name: Place(path) for name, path in stores.items()}
        self.runs = place / "runs"
        self.runs.touch()
        self.agent = place / "agent"
        self.agent.write_text("#!/bin/sh\n" + AGENT.replace("RUNS", str(self.runs)))
        self.agent.chmod(0o755)
        (place / "count.yaml").write_text(WORKFLOW)
        (place / "more.yaml").write_text(MORE)
        self.last_errors = ""
        self.started = self.killed = self.killed_agents = self.last_status = 0
        self.statuses: Counter[tuple[str, int]] = Counter()

    def run(self, store: str, *words: str, kill: float | None = None) -> Command:
        """Start a command; *kill* is after how many seconds it is killed."""
        self.started += 1
        said = self.place / f"said-{self.started}"
        pid = os.fork()
        if pid == 0:
            self._be(self.stores[store].path, words, said)
        dies_at = None if kill is None else time.monotonic() + kill
        return Command((store, *words), pid, os.pidfd_open(pid), said, dies_at)

    def _be(self, path: str, words: tuple[str, ...], said: Path) -> None:
        status = 70
        try:
            os.setsid()
            os.chdir(self.place)
            os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 1)
            os.dup2(os.open(said.with_suffix(".err"), os.O_WRONLY | os.O_CREAT), 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            status = run(UWF, words, prog="uwf", environ={**os.environ, "UWF_REPO": path})
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)

    def crowd(self, commands: Iterable[Command], *, size: int) -> None:
        """Let *size* commands run at a time until all have ended."""
        running: list[Command] = []
        for command in commands:
            running.append(command)
            while len(running) >= size:
                running = self._wait(running)
        while running:
            running = self._wait(running)

    def do(self, store: str, *words: str) -> int:
        """Run a command to its end, and return its status."""
        command = self.run(store, *words)
        while self._wait([command]):
            pass
        return self.last_status

    def _wait(self, running: list[Command]) -> list[Command]:
        """Wait for an end or a kill; return what still runs."""
        waiting = select.poll()
        for each in running:
            waiting.register(each.ended, select.POLLIN)
        deadlines = [each.dies_at for each in running if each.dies_at is not None]
        wait_s = min(deadlines) - time.monotonic() if deadlines else LONGEST_S
        ended = {descriptor for descriptor, _event in waiting.poll(max(0, wait_s) * 1000)}
        assert ended or deadlines, ("they hang", running)
        left = []
        for each in running:
            if each.ended in ended:
                self._end(each)
            elif each.dies_at is not None and each.dies_at <= time.monotonic():
                os.kill(each.pid, signal.SIGKILL)
                left.append(each._replace(dies_at=None))
            else:
                left.append(each)
        return left

    def _end(self, command: Command) -> None:
        status = os.waitstatus_to_exitcode(os.waitpid(command.pid, 0)[1])
        os.close(command.ended)
        self.last_status = status
        store, *words = command.words
        verb = words[1] if words[0] == "thread" else words[0]
        self.statuses[verb, status] += 1
        self.killed += status == -signal.SIGKILL
        told_wrong = command.said.with_suffix(".err")
        errors = told_wrong.read_text() if told_wrong.exists() else ""
        self.last_errors = errors
        assert status in (*FINE, -signal.SIGKILL), (command.words, status, errors)
        assert "Traceback" not in errors, (command.words, errors)
        if status == 0:
            told = json.loads(command.said.read_text() or "{}")
            self.stores[store].promised |= {told[key] for key in ("commit", "head") if key in told}

    def kill_later(self, command: Command, lines: int, wait_s: float) -> None:
        """Kill a command some time after agents wrote *lines* more; not if it ends before."""
        lines += len(self.runs.read_text().splitlines())
        while not select.select([command.ended], [], [], 0.005)[0]:
            if len(self.runs.read_text().splitlines()) >= lines:
                select.select([command.ended], [], [], wait_s)
                os.kill(command.pid, signal.SIGKILL)
                return

    def kill_an_agent(self) -> None:
        """Kill an agent that is at work, if there is one, as one that runs out of memory."""
        began, finished = self.read_runs()
        for name, pid in reversed(began.items()):
            if name not in finished:
                with suppress(OSError):
                    if str(self.agent).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                        os.kill(pid, signal.SIGKILL)
                        self.killed_agents += 1
                        return

    def read_runs(self) -> tuple[dict[str, int], set[str]]:
        """Return the process of each run of an agent that began, and the runs that finished."""
        began: dict[str, int] = {}
        finished = set()
        for what, name, *pid in map(str.split, self.runs.read_text().splitlines()):
            if what == "began":
                began[name] = int(pid[0])
            else:
                finished.add(name)
        return began, finished


class Found(NamedTuple):
    """What the stores have of the runs of agents."""

    steps: dict[str, set[str]]
    """The StepNodes of each run of an agent, and of each answer of a person."""

    anywhere: set[str]
    """The runs that anything tells of: steps, attempts, kept commits."""

    names: set[str]
    """All commits, and all nodes that were the head of a thread."""


def find_all(place: Place) -> Found:
    """Look up everything that the threads of a store hold."""
    store = open_store(place.path)
    steps: dict[str, set[str]] = {}
    names: set[str] = set()
    for _name, tip in place.tips(ACTIVE, ARCHIVE, KEPT):
        for snapshot in walk_history(store, Oid(tip), through_forks=True):
            if snapshot.commit.oid in names:
                break
            names |= {snapshot.commit.oid, snapshot.record.node}
            if snapshot.record.event in ("step", "answer"):
                run_name = snapshot.get_head_node().payload["meta"]["run"]
                steps.setdefault(run_name, set()).add(snapshot.record.node)
    tips = "".join(tip + "\n" for _name, tip in place.tips())
    listed = place.git("rev-list", "--objects", "--stdin", given=tips)
    objects = "".join(line.split()[0] + "\n" for line in listed.splitlines())
    return Found(steps, set(NAME.findall(place.git("cat-file", "--batch", given=objects))), names)
