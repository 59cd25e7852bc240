"""Bind roles to agents: `--agent`, the workflow's overrides, its default, the configured one."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from uwf_git.agents.command_line import split_command
from uwf_git.commands.turn.agent_words import CONFIG_NAME
from uwf_git.commands.turn.typed_agents import lay_over, leave_kept, read_typed
from uwf_git.model.builtin import WORKFLOW
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.model.workflow import Workflow, parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.trust import is_set_by_store, is_trusted


class Bound(NamedTuple):
    """The agents of a workflow's roles."""

    agents: dict[str, dict[str, Any]]
    """The AgentConfig payload of each role that has one."""

    typed: list[dict[str, Any]]
    """The agents that the user typed or configured, so that they may run here."""

    left: tuple[str, ...] = ()
    """The roles that a command for every role left as the file binds them."""


def bind_roles(
    store: Store,
    workflow: Workflow,
    *,
    typed: Iterable[str] = (),
    default: str | None = None,
    directory: str | None = None,
) -> Bound:
    """Return the agent of each role of *workflow* that has one.

    *typed* are values of ``--agent``: a command or settings, for every role or for one; *default*
    comes before the configured agent. The agents will run in *directory*.

    Raises:
        What ``read_typed`` and ``lay_over`` raise.
        BadCommand: the configured command cannot be split into words.
    """
    command = default or store.config.get(CONFIG_NAME)
    configured = {"command": command} if command else None
    for_all = workflow.default_agent or configured
    binding = dict.fromkeys(workflow.roles, for_all)
    binding |= {role: agent for role, agent in workflow.agent_overrides.items() if role in binding}
    bases = {role: agent for role, agent in binding.items() if agent is not None}
    is_own = bool(default) or not is_set_by_store(store, CONFIG_NAME)

    def may_run(agent: dict[str, Any]) -> bool:
        return (is_own and agent == configured) or is_trusted(store, agent, directory)

    said = bind_typed(workflow, typed, find_base=bases.get, may_run=may_run)
    agents = bases | said.agents
    if configured and configured in agents.values():
        split_command(configured["command"])
        # What the store's own config names runs only if it is trusted already.
        if is_own:
            said.typed.append(configured)
    bound = {role: agents[role] for role in workflow.roles if role in agents}
    return Bound(bound, said.typed, said.left)


def find_played(workflow: Workflow, closure: Iterable[Node]) -> Workflow:
    """Return *workflow* with the roles that need agents: its own, and those of workflows in it.

    *closure* has all nodes that it reaches. A role that a whole workflow plays needs no agent.
    """
    nodes = {node.hash: node for node in closure}
    inner = [
        parse_workflow(node)
        for node in nodes.values()
        if node.type == WORKFLOW and node.hash != workflow.hash
    ]
    if not inner:
        return workflow
    roles: dict[str, NodeHash] = {}
    overrides: dict[str, dict[str, Any]] = {}
    for each in (workflow, *inner):
        for role, name in each.roles.items():
            if role in roles or (name in nodes and "workflow" in nodes[name].payload):
                continue
            roles[role] = name
            # That of the outer one is everybody's.
            default = None if each is workflow else each.default_agent
            own = each.agent_overrides.get(role, default)
            if own is not None:
                overrides[role] = own
    return workflow._replace(roles=roles, agent_overrides=overrides)


def bind_typed(
    workflow: Workflow,
    typed: Iterable[str],
    *,
    find_base: Callable[[str], dict[str, Any] | None],
    may_run: Callable[[dict[str, Any]], bool],
    keeps: bool = False,
) -> Bound:
    """Return the agents of the roles for which one was typed; *find_base* returns those before.

    *may_run* tells which of those may run here. *keeps* is as in ``lay_over``.
    A command for every role leaves those that the file binds to a person, or to a check.
    """
    asked = read_typed(workflow, typed)
    agents: dict[str, dict[str, Any]] = {}
    said: list[dict[str, Any]] = []
    left: list[str] = []
    for role in workflow.roles:
        meant = [each for each in asked if each.is_for(role)]
        mine = leave_kept(workflow, role, meant)
        if mine != meant:
            left += [] if any(each.role == role for each in mine) else [role]
        if not mine:
            continue
        base = find_base(role)
        is_fit = base is None or may_run(base)
        laid = lay_over(role, base, mine, may_run=is_fit, keeps=keeps)
        agents[role] = laid.agent
        if laid.is_own and laid.agent not in said:
            said.append(laid.agent)
    return Bound(agents, said, tuple(left))
