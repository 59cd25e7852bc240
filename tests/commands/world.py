"""A small world for commands: a store, a caller, the workflow `demo`, players in place of agents.

Time and ids come from the test's own clock and counter.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from programs import write_program
from seal import START_MS

from uwf_git.agents.command_line import AgentReply
from uwf_git.commands.caller import Caller
from uwf_git.commands.control.answer import (
    PersonAnswer,
    answer_thread,
    kill_thread,
    patch_thread,
    pause_thread,
    read_question,
    resume_thread,
    retry_thread,
)
from uwf_git.commands.control.change_rules import Amended, AmendRequest, amend_thread, poke_thread
from uwf_git.commands.inspect.read import render_thread
from uwf_git.commands.remove import Removed, plan_removals, remove_thread
from uwf_git.commands.start import ForkRequest, StartRequest, fork_thread, start_thread
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.step.step_thread import StepRequest, step_thread
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.commands.turn.turn import Played, Player, ThreadResult, Turn
from uwf_git.commands.verify.thread import check_thread
from uwf_git.commands.verify.verify import verify
from uwf_git.commands.workflow.build import PutWorkflow, put_workflow
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.git.config import set_config
from uwf_git.store.store import Store, create_store, open_store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.history import Snapshot, read_snapshot, walk_history

Git = Callable[..., str]

DEMO = """\
name: demo
description: Write until somebody is content.
roles:
  writer:
    description: Writes.
    systemPrompt: Write.
    outputSchema: {type: object, properties: {text: {type: string}}, required: [text]}
  checker:
    description: Checks.
    systemPrompt: Check.
    extractPrompt: Is it good?
    outputSchema: {type: object, properties: {ok: {type: boolean}}, required: [ok]}
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: checker}
  - {from: checker, to: writer, condition: meta.ok = false}
  - {from: checker, to: $END}
"""


def replied(meta: Any, content: str = "What was said.", **fields: Any) -> Played:
    """Return the result of a turn that succeeded after a second and a half."""
    return Played(AgentReply(meta, content, "object", **fields), START_MS, 1500)


def says(meta: Any, content: str = "What was said.", **fields: Any) -> Player:
    """Return a player that always replies the same."""
    return lambda _turn: replied(meta, content, **fields)


def fails(message: str = "exit status 7", *, kind: str = "exited", **fields: Any) -> Player:
    """Return a player that fails."""
    error = {"kind": kind, "message": message}
    return lambda _turn: Played(None, START_MS, 500, error=error, **fields)


def content_player(turn: Turn) -> Played:
    """Play both roles of `demo` so that it ends as soon as it can."""
    return replied({"text": "some words"} if turn.role == "writer" else {"ok": True})


@dataclass(slots=True)
class World:
    """A store and a caller of commands."""

    place: Path
    store: Store
    caller: Caller
    new_id: Callable[[], ThreadId]

    def put(self, source: str = DEMO) -> PutWorkflow:
        """Register a workflow."""
        return put_workflow(self.store, self.caller, source.encode())

    def start(self, *agents: str, workflow: str = "demo", prompt: str = "Do it.") -> ThreadId:
        """Start a thread, by default with an agent that is never run."""
        return self.begin(StartRequest(workflow, prompt, agents or ("nobody",)))

    def begin(self, request: StartRequest) -> ThreadId:
        """Start a thread as *request* says."""
        return start_thread(self.store, self.caller, request, thread=self.new_id()).thread

    def fork(self, thread: str, at: str | None = None, **asked: Any) -> ThreadId:
        """Fork a thread at a step; further keywords are those of the request."""
        request = ForkRequest(thread, at, **asked)
        return fork_thread(self.store, self.caller, request, thread=self.new_id()).thread

    def begun(self, source: str = DEMO, *agents: str) -> ThreadId:
        """Register a workflow and start a thread of it."""
        return self.start(*agents, workflow=self.put(source).workflow)

    def stepped(self, *plays: Player, source: str = DEMO, times: int = 1) -> ThreadId:
        """Start a thread of a workflow, and take so many steps with each of *plays*."""
        thread = self.begun(source)
        for play in plays or (content_player,):
            for _ in range(times):
                self.step(thread, play)
        return thread

    def waiting(self) -> ThreadId:
        """Start a thread, and step until it waits for a person to play the checker."""
        thread = self.begun(DEMO, "nobody", "checker=human")
        self.step(thread)
        assert self.step(thread).status == "waiting"
        return thread

    def step(
        self,
        thread: str,
        play: Player = content_player,
        *,
        command: str | None = None,
        workdir: str | None = None,
        **said: Any,
    ) -> ThreadResult:
        """Take a step; *command* and further keywords choose the agent."""
        if command is not None:
            said["agents"] = (command,)
        request = StepRequest(thread, play, Choice(**said), workdir)
        return step_thread(self.store, self.caller, request)

    def fail(self, thread: str, play: Player | None = None, **said: Any) -> TurnFailed:
        """Take a step that fails, and return how."""
        with pytest.raises(TurnFailed) as caught:
            self.step(thread, play or fails(), **said)
        return caught.value

    def retry(self, thread: str, *, hint: str = "") -> ThreadResult:
        """Let a failed thread try again."""
        return retry_thread(self.store, self.caller, thread, hint=hint)

    def pause(self, thread: str, *, reason: str = "", now: bool = False) -> ThreadResult:
        """Pause a thread."""
        return pause_thread(self.store, self.caller, thread, reason=reason, now=now)

    def resume(self, thread: str, *, reason: str = "") -> ThreadResult:
        """Resume a paused thread."""
        return resume_thread(self.store, self.caller, thread, reason=reason)

    def kill(self, thread: str, *, reason: str = "") -> ThreadResult:
        """End a thread."""
        return kill_thread(self.store, self.caller, thread, reason=reason)

    def patch(self, thread: str, patch: Any, *, reason: str = "") -> ThreadResult:
        """Change the state of a thread."""
        return patch_thread(self.store, self.caller, thread, patch, reason=reason)

    def poke(self, thread: str, **asked: Any) -> ThreadResult:
        """Take the newest step back."""
        return poke_thread(self.store, self.caller, thread, **asked)

    def amend(self, thread: str, *agents: str, **asked: Any) -> Amended:
        """Change the rules of a thread; keywords are those of the request."""
        return amend_thread(self.store, self.caller, AmendRequest(thread, agents=agents, **asked))

    def answer(self, thread: str, said: PersonAnswer) -> ThreadResult:
        """Answer the question to a person in a thread."""
        question = read_question(self.store, self.caller, thread)
        return answer_thread(self.store, self.caller, question, said)

    def remove(self, *threads: str) -> list[Removed]:
        """Remove ended threads, and what is below them."""
        plan = plan_removals(self.store, threads)
        return [remove_thread(self.store, self.caller, each) for each in plan]

    def finish(self, thread: ThreadId, play: Player = content_player) -> Snapshot:
        """Step a thread to its end."""
        while self.snapshot(thread).record.status != "completed":
            self.step(thread, play)
        return self.snapshot(thread)

    def snapshot(self, thread: ThreadId) -> Snapshot:
        """Read the tip of an active or archived thread."""
        refs = self.store.refs
        commit = refs.find(f"refs/archive/{thread}") or refs.find(f"refs/threads/{thread}")
        assert commit is not None
        return read_snapshot(self.store, commit)

    def assert_sound(self, thread: ThreadId) -> None:
        """Check a thread and its branches as `uwf verify` does."""
        head = get_head(self.store, thread)
        found = check_thread(self.store, thread, head.commit, archived=head.archived)
        assert [each.message for each in found] == []

    def assert_whole(self) -> None:
        """Check the whole store as `uwf verify` does, in a new process."""
        self.reopen()
        assert verify(self.store, []).troubles == ()

    def tip(self, thread: ThreadId) -> Oid:
        """Return the newest commit of an active or archived thread."""
        return self.snapshot(thread).commit.oid

    def events(self, thread: ThreadId) -> list[str]:
        """Return what happened to a thread, the oldest first."""
        return [str(each.record.event) for each in walk_history(self.store, self.tip(thread))][::-1]

    def configure(self, name: str, value: str) -> None:
        """Change the store's configuration, and open it again."""
        set_config(f"{self.store.path}/config", name, value)
        self.reopen()

    def reopen(self) -> None:
        """Open the store again, as a new process would."""
        self.store = open_store(self.store.path, environ=self.caller.environ)

    def program(self, text: str, *, name: str = "agent") -> str:
        """Write a program for /bin/sh, and return its path."""
        return write_program(self.place / name, text)

    def process(
        self, *words: str, env: dict[str, str] | None = None, stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[bytes]:
        """Start `uwf` on this store in a process."""
        return subprocess.Popen(
            [sys.executable, "-m", "uwf_git", *words],
            env={**os.environ, "UWF_REPO": self.store.path, **(env or {})},
            cwd=self.place,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


def make_world(at: Path, clock: Callable[[], int], ids: Callable[[], ThreadId]) -> World:
    """Return an empty store in the folder *at*, and a caller in a directory beside it."""
    place = at / "place"
    place.mkdir()
    caller = Caller(clock, dict(os.environ), str(place))
    return World(place, make_store(at / "store.git"), caller, ids)


def make_store(path: Path) -> Store:
    """Return a new store without fsync: no test loses power, so it would only cost time."""
    store = create_store(str(path))
    set_config(f"{store.path}/config", "uwf.fsync", "false")
    return open_store(store.path, environ=os.environ)


def read_thread(store: Store, text: str, *, last: int | None = None) -> str:
    """Return the Markdown of `uwf thread read` in one piece."""
    return "".join(render_thread(store, text, last=last))
