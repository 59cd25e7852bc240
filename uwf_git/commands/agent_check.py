"""`uwf agent check`: let an agent take one small step in a temporary store.

Nothing but a temporary folder is written; the agent gets the settings of the caller's store.
"""

import os
import re
import shlex
import tempfile
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from uwf_git.agents.command_line import Listener, OnOutput, split_command
from uwf_git.commands.agent_run.play_agent import play_agent
from uwf_git.commands.caller import Caller
from uwf_git.commands.start import StartRequest, start_thread
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.step.step_thread import StepRequest, step_thread
from uwf_git.commands.turn.choose_agent import build_agent
from uwf_git.commands.turn.next_move import PERSON
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.workflow.build import put_workflow
from uwf_git.errors import AgentFailed, Refused
from uwf_git.model.names import ThreadId
from uwf_git.store.git.config import GitConfig, add_config
from uwf_git.store.store import Store, create_store
from uwf_git.store.trust import describe_command, is_set_by_store, is_trusted

_WORKFLOW = b"""\
name: agent-check
description: One small step, to see whether an agent works.
roles:
  tester:
    description: Says that it is there.
    systemPrompt: |
      This is a test of the connection to you. Use no tools and change no files; just answer.
    outputSchema:
      type: object
      properties:
        ok: {type: boolean, description: Always true.}
      required: [ok]
moderator:
  - {from: $START, to: tester}
  - {from: tester, to: $END}
"""

_PROMPT = "Set ok to true, and write this word as your text: {word}"

_COPIED = "uwf."
_NOT_COPIED = {"uwf.store", "uwf.trustedagent", "uwf.agent", "uwf.onreceive"}

_OF_ADAPTER = re.compile(r"uwf\.([a-z-]+)\.([a-z0-9-]+)")

_LONGEST_CONTENT = 2_000


class CheckRequest(NamedTuple):
    command: str
    timeout_s: int
    thread: ThreadId
    config: GitConfig

    trusted: Mapping[str, str] = MappingProxyType({})
    """What ``find_trusted_settings`` finds in that store."""


class AgentCheck(NamedTuple):
    meta: Any
    content: str
    rung: str | None
    """How the meta was found; None if the agent does not report the rung."""

    usage: dict[str, Any] | None
    duration_ms: int
    prompt_characters: int
    """The length of the prompt that the agent reports; 0 without such a report."""

    heard: bool
    """Whether its text has the word of the task, which shows that it read the prompt."""


def check_agent(caller: Caller, request: CheckRequest, *, on_stderr: OnOutput) -> AgentCheck:
    if request.command.strip() == PERSON:
        raise Refused(
            f"{PERSON} is a person: there is no program to check",
            code="nothing-runs",
            hint=f"bind a role with `--agent ROLE={PERSON}`, or all with `uwf config set agent "
            f"{PERSON}`; their threads wait for `uwf thread answer`",
            agent=PERSON,
        )
    command = request.command
    program, *arguments = split_command(command)
    if "/" in program and not os.path.isabs(program):
        command = shlex.join([os.path.abspath(os.path.join(caller.cwd, program)), *arguments])
    word = f"uwf-{request.thread[-6:].lower()}"
    with tempfile.TemporaryDirectory(prefix="uwf-check-") as folder:
        workdir = os.path.join(folder, "work")
        os.mkdir(workdir)
        path = os.path.join(folder, "store.git")
        # The user types the agent, but their list is for stores that stay.
        store = create_store(path, environ={})._replace(trust_file=os.path.join(path, "trust"))
        for name, values in request.config.values.items():
            if name.startswith(_COPIED) and name not in _NOT_COPIED:
                for value in values:
                    add_config(os.path.join(path, "config"), name, value)
        # Settings of this temporary store are not trusted, and it has no place for trust in them.
        there = caller._replace(cwd=workdir, environ={**request.trusted, **caller.environ})
        put_workflow(store, there, _WORKFLOW)
        start = StartRequest("agent-check", _PROMPT.format(word=word), (f"tester={command}",))
        start_thread(store, there, start, thread=request.thread)
        seen: list[Played] = []

        def play(turn: Turn) -> Played:
            limited = {"command": command, "timeout": request.timeout_s}
            agent = build_agent(limited, timestamp=turn.agent.timestamp)
            seen.append(play_agent(turn._replace(agent=agent), Listener(on_stderr)))
            return seen[-1]

        try:
            step_thread(store, there, StepRequest(request.thread, play))
        except TurnFailed as failed:
            raise _failure(request.command, seen[-1], failed) from failed
        return _describe(seen[-1], word)


def find_trusted_settings(store: Store, cwd: str) -> dict[str, str]:
    """Return the settings of adapters that *store* sets and the user trusts, as variables."""
    return {
        f"uwf_{match[1]}_{match[2]}".upper().replace("-", "_"): values[-1]
        for name, values in store.config.values.items()
        if (match := _OF_ADAPTER.fullmatch(name))
        and is_set_by_store(store, name)
        and is_trusted(store, describe_command(name, values[-1]), cwd)
    }


def _failure(command: str, played: Played, failed: TurnFailed) -> AgentFailed:
    """Build the error; only the step knows whether a reply fits the schema."""
    message = failed.message.partition(": ")[2]
    error = played.error or {"kind": failed.facts.get("kind"), "message": message}
    return AgentFailed(
        f"{command} took no step: {error.get('message')}",
        code="check-failed",
        hint=played.hint or "its log is above; `--help` of its program lists its options",
        agent=command,
        kind=error.get("kind"),
        durationMs=played.duration_ms,
        output=played.stdout[-_LONGEST_CONTENT:].decode(errors="replace"),
    )


def _describe(played: Played, word: str) -> AgentCheck:
    reply = played.reply
    if reply is None:
        raise AssertionError("a step that succeeded has a reply")
    return AgentCheck(
        meta=reply.meta,
        content=reply.content[:_LONGEST_CONTENT],
        rung=reply.rung,
        usage=reply.usage,
        duration_ms=played.duration_ms,
        prompt_characters=len(played.left.prompt),
        heard=word in reply.content,
    )
