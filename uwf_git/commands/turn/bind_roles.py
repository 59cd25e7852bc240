"""Bind roles to agents: `--agent`, the workflow's overrides, its default, the configured default.

Source: DESIGN 4.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from uwf_git.agents.command_line import split_command
from uwf_git.commands.turn.choose_agent import CONFIG_NAME
from uwf_git.commands.turn.typed_agents import lay_over, read_typed
from uwf_git.model.workflow import Workflow
from uwf_git.store.store import Store
from uwf_git.store.trust import is_trusted


class Bound(NamedTuple):
    """The agents of a workflow's roles."""

    agents: dict[str, dict[str, Any]]
    """The AgentConfig payload of each role that has one."""

    typed: list[dict[str, Any]]
    """The agents that were typed or configured here, so that they may run here."""


def bind_roles(
    store: Store, workflow: Workflow, *, typed: Iterable[str] = (), default: str | None = None
) -> Bound:
    """Return the agent of each role of *workflow* that has one.

    *typed* are values of ``--agent``: a command or settings, for every role or for one; *default*
    comes before the configured agent.

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
    own = [] if configured is None else [configured]
    said = bind_typed(store, workflow, typed, find_base=bases.get, own=own)
    agents = bases | said.agents
    if configured and configured in agents.values():
        split_command(configured["command"])
        said.typed.append(configured)
    return Bound({role: agents[role] for role in workflow.roles if role in agents}, said.typed)


def bind_typed(  # noqa: PLR0913 (the last three are keyword-only)
    store: Store,
    workflow: Workflow,
    typed: Iterable[str],
    *,
    find_base: Callable[[str], dict[str, Any] | None],
    own: Iterable[dict[str, Any]] = (),
    keeps: bool = False,
) -> Bound:
    """Return the agents of the roles for which one was typed; *find_base* returns those before.

    The agents *own* may run here though the store does not say so. *keeps* is as in ``lay_over``.
    """
    asked, may_run = read_typed(workflow, typed), list(own)
    agents: dict[str, dict[str, Any]] = {}
    said: list[dict[str, Any]] = []
    for role in workflow.roles:
        mine = [each for each in asked if each.is_for(role)]
        if not mine:
            continue
        base = find_base(role)
        is_fit = base is None or base in may_run or is_trusted(store, base)
        laid = lay_over(role, base, mine, may_run=is_fit, keeps=keeps)
        agents[role] = laid.agent
        if laid.is_own and laid.agent not in said:
            said.append(laid.agent)
    return Bound(agents, said)
