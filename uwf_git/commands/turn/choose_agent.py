"""Choose what plays a step: the agent, and the checks of its role."""

import json
import shlex
from typing import Any, NamedTuple

from uwf_git.agents.command_line import agent_name
from uwf_git.commands.turn.bind_roles import TypedAgent, lay_over, leave_kept, read_typed
from uwf_git.commands.turn.next_move import CONFIG_NAME, PERSON
from uwf_git.debug_log import debug
from uwf_git.errors import Refused
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.names import ThreadId
from uwf_git.model.node import Node, build_node
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import describe_check
from uwf_git.store.store import Store
from uwf_git.store.threads.snapshot import Snapshot, get_role, get_typed, get_workflow
from uwf_git.store.trust import (
    agent_text,
    find_meant_files,
    is_set_by_store,
    is_trusted,
    list_formerly_trusted,
)
from uwf_git.store.workflows import is_shipped_agent

# Choose the agent of a step: `--agent`, then the thread's binding, then the configured default.
#
# A command that came with a thread, or that the store's own config names, does not run until the
# user trusts it here.


class NoAgent(Refused):
    code = "no-agent"

    def __init__(self, role: str, thread: ThreadId | None = None) -> None:
        give = "give one with --agent CMD"
        if thread is not None:
            give = f"bind one: `uwf thread amend {thread} --agent {shlex.quote(f'{role}=CMD')}`"
        super().__init__(
            f"no agent is bound to role {role}",
            hint=f"{give}, or a default with `uwf config set agent CMD`",
            role=role,
        )


def _agent_not_trusted(
    thread: ThreadId, role: str, agent: dict[str, Any], files: tuple[str, ...], *, is_stored: bool
) -> Refused:
    """Refuse *agent*; *is_stored*: the store's own config trusts it, as an older uwf wrote it."""
    # The whole command: a cut text could hide its harmful part.
    extra = f" with {json.dumps(agent['env'])}" if agent.get("env") else ""
    meant = f" (here {', '.join(files)})" if files else ""
    hint = f"read it; if it may run here: `uwf thread step {thread} --trust`; "
    if is_stored:
        hint += "what this store's config trusts no longer counts, `uwf agent trust --stored` "
        hint += "takes it over; "
    return Refused(
        f"role {role} would run a command that is not trusted here: {agent['command']}"
        f"{extra}{meant}",
        code="agent-not-trusted",
        hint=f"{hint}or use your own with --agent CMD",
        thread=thread,
        role=role,
        agent=agent,
        files=list(files),
    )


class Choice(NamedTuple):
    agents: tuple[str, ...] = ()
    """Values of ``--agent``, for this step or drive only: ``[ROLE=]CMD`` or settings."""

    default: str | None = None
    """$UWF_AGENT: the default agent, before the configured one."""

    trust: bool = False
    """``--trust``: allow the thread's own command from now on."""

    workdir: str | None = None
    """Where the agent will run: the files that its command means are there; None: not known."""

    is_for_drive: bool = False
    """A drive plays every role: a command typed for all leaves out people and checks."""

    allowed: frozenset[str] = frozenset()
    """Commands that a driver trusts and has sent: payloads as `agent_text` writes them."""

    others: frozenset[str] = frozenset()
    """Roles of other workflows that *agents* may name: the thread is one of several that run."""


def choose_agent(
    store: Store, snapshot: Snapshot, present: ThreadState, *, role: str, choice: Choice
) -> Node:
    typed = _read_typed(snapshot, present, role, choice)
    node, is_fit = None, True
    if not any("command" in each.settings for each in typed):
        node, is_fit = _find_bound(store, snapshot, present, role=role, choice=choice)
    if typed:
        base = None if node is None else node.payload
        agent, is_fit = lay_over(role, base, typed, may_run=is_fit, keeps=False)
        node = build_agent(agent, timestamp=snapshot.commit.time_s * 1000)
    if node is None:
        raise NoAgent(role, snapshot.record.thread)
    is_fit = is_fit or choice.trust or is_person(node)
    name = agent_name(node.payload["command"])
    if typed:
        debug("PFC8BH1W", "agent named here", role=role, agent=name, may_run=is_fit)
    else:
        debug("6MNHY3VE", "agent bound", role=role, agent=name, node=node.hash, may_run=is_fit)
    if not is_fit:
        files = find_meant_files(node.payload, choice.workdir) or ()
        is_stored = node.payload in list_formerly_trusted(store)
        thread = snapshot.record.thread
        raise _agent_not_trusted(thread, role, node.payload, files, is_stored=is_stored)
    return node


def _read_typed(
    snapshot: Snapshot, present: ThreadState, role: str, choice: Choice
) -> list[TypedAgent]:
    if not choice.agents:
        return []
    workflow = get_workflow(snapshot, present.workflow)
    if choice.others:
        # Which hash is no matter: the names alone are read.
        known = dict.fromkeys(choice.others, workflow.hash)
        workflow = workflow._replace(roles={**known, **workflow.roles})
    typed = [each for each in read_typed(workflow, choice.agents) if each.is_for(role)]
    if not choice.is_for_drive or role not in present.binding:
        return typed
    bound = get_typed(snapshot, present.binding[role], AGENT_CONFIG).payload
    return leave_kept(workflow, role, bound, typed)


def _find_bound(
    store: Store, snapshot: Snapshot, present: ThreadState, *, role: str, choice: Choice
) -> tuple[Node | None, bool]:
    """Return the agent of *role* without ``--agent``, and whether it may run here."""
    workflow = snapshot.record.workflow_name
    if role in present.binding:
        node = get_typed(snapshot, present.binding[role], AGENT_CONFIG)
        return node, _may_run_in(choice, store, node.payload, workflow=workflow)
    default = choice.default or store.config.get(CONFIG_NAME) or None
    if default is None:
        return None, True
    node = build_agent({"command": default}, timestamp=snapshot.commit.time_s * 1000)
    if choice.default or not is_set_by_store(store, CONFIG_NAME):
        return node, True
    return node, _may_run_in(choice, store, node.payload, workflow=workflow)


def _may_run_in(choice: Choice, store: Store, agent: dict[str, Any], *, workflow: str) -> bool:
    is_sent = agent_text(agent) in choice.allowed
    return is_sent or may_run(store, agent, workflow=workflow, workdir=choice.workdir)


def may_run(store: Store, agent: dict[str, Any], *, workflow: str, workdir: str | None) -> bool:
    return is_trusted(store, agent, workdir) or is_shipped_agent(workflow, agent)


def is_person(agent: Node) -> bool:
    """Check whether the agent is a person: nothing runs, and the thread waits for an answer."""
    return bool(agent.payload["command"].strip() == PERSON)


def build_agent(payload: dict[str, Any], *, timestamp: int) -> Node:
    return build_node(AGENT_CONFIG, payload, timestamp=timestamp)


# The checks of a role: a command that came from elsewhere runs only if it is trusted here.


def choose_checks(
    store: Store, snapshot: Snapshot, present: ThreadState, *, role: str, choice: Choice
) -> list[dict[str, Any]]:
    """Return what is trusted where the checks of *role* may run, a payload each."""
    asked = get_role(snapshot, get_workflow(snapshot, present.workflow).roles[role])
    checks = [describe_check(command) for command in asked.checks]
    for check in checks:
        name = snapshot.record.workflow_name
        if choice.trust or _may_run_in(choice, store, check, workflow=name):
            continue
        thread, command = snapshot.record.thread, check["command"]
        files = find_meant_files(check, choice.workdir) or ()
        meant = f" (here {', '.join(files)})" if files else ""
        raise Refused(
            f"the answer of role {role} would be checked by a command that is not trusted here: "
            f"{command}{meant}",
            code="check-not-trusted",
            hint=f"read it; if it may run here: `uwf thread step {thread} --trust`",
            thread=thread,
            role=role,
            command=command,
            files=list(files),
        )
    return checks
