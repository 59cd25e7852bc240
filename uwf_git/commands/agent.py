"""`uwf agent trust` and `untrust`: a command, a setting, the agents of a thread or a workflow.

The trusted value is the printed value: the command with all its settings, in a directory.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from uwf_git.agents.command_line import split_command
from uwf_git.commands.turn.choose_agent import find_played, read_played, walk_used
from uwf_git.commands.turn.next_move import CONFIG_NAME
from uwf_git.commands.workflow.find import find_workflow
from uwf_git.errors import BadUsage, Refused
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.model.workflow import Workflow, describe_check, parse_role
from uwf_git.store.git.config import normal_name
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head, resolve_thread
from uwf_git.store.threads.history import get_typed, get_workflow, read_snapshot
from uwf_git.store.threads.local_files import find_workdir
from uwf_git.store.trust import (
    Trusted,
    describe_command,
    is_set_by_store,
    list_formerly_trusted,
    trust_agents,
    untrust_agents,
)

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
    agents = select_agents(store, selection)
    trust_agents(store, agents, _directory_of(store, selection))
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
