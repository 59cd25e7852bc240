"""`uwf agent trust`, `untrust` and `check`: which agents may run, and whether one works."""

import os
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from uwf_git.agents.command_line import Listener, OnOutput, split_command
from uwf_git.commands.agent_run.play_agent import play_agent
from uwf_git.commands.caller import Caller
from uwf_git.commands.start import StartRequest, start_thread
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.step.step_thread import StepRequest, step_thread
from uwf_git.commands.turn.choose_agent import (
    build_agent,
    check_program,
    find_played,
    read_played,
    walk_used,
)
from uwf_git.commands.turn.next_move import CONFIG_NAME, PERSON
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.workflow.build import put_workflow
from uwf_git.commands.workflow.find import find_workflow
from uwf_git.errors import AgentFailed, BadUsage, Refused
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node
from uwf_git.model.workflow import Workflow, describe_check, parse_role
from uwf_git.store.git.config import GitConfig, add_config, normal_name
from uwf_git.store.store import Store, create_store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.history import get_typed, get_workflow, read_snapshot
from uwf_git.store.threads.local_files import find_workdir
from uwf_git.store.threads.naming import resolve_thread
from uwf_git.store.trust import (
    Trusted,
    describe_command,
    is_set_by_store,
    is_trusted,
    list_formerly_trusted,
    trust_agents,
    untrust_agents,
)

# Trust: in a command, a setting, the agents of a thread or a workflow.
#
# The trusted value is the printed value: the command with all its settings, in a directory.

Agents = list[dict[str, Any]]


class AgentSelection(NamedTuple):
    command: str | None = None
    """Select this command; with a thread or a workflow, its agents with this command."""

    thread: str | None = None
    workflow: str | None = None

    cwd: str | None = None
    """The directory whose project may have the workflow, and to which relative paths belong."""

    stored: bool = False
    """What the store's git config trusts, as an older uwf wrote it."""

    setting: str | None = None


def _no_agent_selected(problem: str) -> BadUsage:
    return BadUsage(
        problem,
        code="nobody-meant",
        hint="name a command, or the agents of a --thread or of a --workflow",
    )


def trust(store: Store, selection: AgentSelection) -> Agents:
    agents, directory = select_agents(store, selection), _directory_of(store, selection)
    # The program of what came with a thread or a workflow may be what another agent is to make.
    if selection == AgentSelection(selection.command, cwd=selection.cwd):
        check_program(agents[0], directory)
    trust_agents(store, agents, directory)
    return agents


def untrust(store: Store, selection: AgentSelection) -> list[Trusted]:
    """Remove the trust in the agents that *selection* selects, and return what was removed.

    A command alone selects every trusted agent with it, whatever its settings.
    """
    if selection.thread is None and selection.workflow is None and selection.command is not None:
        gone = untrust_agents(store, command=selection.command)
    else:
        gone = untrust_agents(store, agents=select_agents(store, selection))
    if not gone:
        raise Refused(
            "no such agent is trusted in this store",
            code="not-trusted",
            hint="`uwf agent trusted` lists the trusted ones",
        )
    return gone


def select_agents(store: Store, selection: AgentSelection) -> Agents:
    """Return the agents that *selection* selects; it raises as ``trust``."""
    named = (selection.thread, selection.workflow, selection.setting)
    if sum(each is not None for each in named) + selection.stored > 1:
        raise _no_agent_selected("--thread, --workflow, --setting and --stored exclude each other")
    command = selection.command
    if selection.setting is not None:
        place, agents = f"setting {selection.setting}", _of_setting(store, selection.setting)
    elif selection.stored:
        place, agents = "this store's config", list_formerly_trusted(store)
    elif selection.thread is not None:
        place, agents = f"thread {selection.thread}", _of_thread(store, selection.thread)
    elif selection.workflow is not None:
        place, agents = f"workflow {selection.workflow}", _of_workflow(store, selection)
    elif command is None:
        raise _no_agent_selected("no agent was named")
    else:
        split_command(command)
        return [{"command": command}]
    chosen = [
        agent
        for at, agent in enumerate(agents)
        if command in (None, agent["command"]) and agent not in agents[:at]
    ]
    if not chosen:
        commands = "; ".join(sorted({str(agent["command"]) for agent in agents}))
        raise Refused(
            f"{place} has no such agent",
            code="no-such-agent",
            hint=f"its agents are: {commands}" if agents else "it names none",
        )
    return chosen


def _directory_of(store: Store, selection: AgentSelection) -> str | None:
    """Return the directory where the relative paths in the selected commands begin."""
    if selection.setting is not None and not _is_for_agents(selection.setting):
        return store.path
    if selection.thread is None:
        return selection.cwd
    return find_workdir(store, resolve_thread(store, selection.thread)) or selection.cwd


def _is_for_agents(setting: str) -> bool:
    """Check whether its value means files of a work directory, and not of the store."""
    name = normal_name(setting)
    # `uwf.claude.program` and the like.
    return name == normal_name(CONFIG_NAME) or re.match(r"uwf\..+\.", name) is not None


def _of_setting(store: Store, name: str) -> Agents:
    if not is_set_by_store(store, name):
        raise Refused(
            f"this store's config does not set {name}",
            code="no-setting-of-store",
            hint="what your own git config sets needs no trust",
            setting=name,
        )
    of_user = store.user_config.get_all(name)
    values = store.config.get_all(name)
    return [describe_command(name, value) for value in values if value not in of_user]


def _of_thread(store: Store, text: str) -> Agents:
    snapshot = read_snapshot(store, get_head(store, resolve_thread(store, text)).commit)
    present = snapshot.get_present()
    workflow = get_workflow(snapshot, present.workflow)
    bound = [get_typed(snapshot, name, AGENT_CONFIG).payload for name in present.binding.values()]
    inner = read_played(snapshot, workflow).agent_overrides
    played_by = workflow.roles.keys() | present.binding.keys()
    kept = [agent for role, agent in inner.items() if role not in played_by]
    return [*bound, *kept, *_list_checks(workflow, snapshot.get_node)]


def _of_workflow(store: Store, selection: AgentSelection) -> Agents:
    workflow, closure, *_ = find_workflow(store, selection.workflow or "", cwd=selection.cwd)
    played = find_played(workflow, closure)
    checks = _list_checks(workflow, {node.hash: node for node in closure}.__getitem__)
    named = [workflow.default_agent, *played.agent_overrides.values(), *checks]
    return [agent for agent in named if agent is not None]


def _list_checks(workflow: Workflow, read: Callable[[NodeHash], Node]) -> Agents:
    used = walk_used(workflow, read)
    roles = [parse_role(read(name)) for each in used for name in each.roles.values()]
    return [describe_check(command) for role in roles for command in role.checks]


# The check: let an agent take one small step in a temporary store.
#
# Nothing but a temporary folder is written; the agent gets the settings of the caller's store.

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
