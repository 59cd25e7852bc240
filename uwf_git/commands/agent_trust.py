"""`uwf agent trust`: which commands may run in this store.

Owns: which agents a command line means: a command, or those of a thread or a workflow.
Knows nothing of: how trust is kept (store/trust.py).
Always true: what is trusted is exactly what is shown: the command with all its settings.
"""

from typing import Any, NamedTuple

from uwf_git.agents.command_line import split_command
from uwf_git.commands.find_workflow import find_workflow
from uwf_git.commands.typed_node import get_typed
from uwf_git.errors import BadUsage, Refused
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.store.heads import get_head, resolve_thread
from uwf_git.store.snapshot import read_snapshot
from uwf_git.store.store import Store
from uwf_git.store.trust import Trusted, trust_agents, untrust_agents

Agents = list[dict[str, Any]]


class WhoIsMeant(NamedTuple):
    """The agents that a command line means."""

    command: str | None = None
    """This command; with a thread or a workflow, those of its agents that have it."""

    thread: str | None = None
    workflow: str | None = None

    cwd: str | None = None
    """Where the workflow may be a file of the project; None is in the registry alone."""


class NobodyMeant(BadUsage):
    """The words name no agent."""

    code = "nobody-meant"

    def __init__(self, problem: str) -> None:
        super().__init__(
            problem, hint="name a command, or the agents of a --thread or of a --workflow"
        )


class NoSuchAgent(Refused):
    """There is no such agent where it was looked for."""

    code = "no-such-agent"

    def __init__(self, place: str, agents: Agents) -> None:
        commands = "; ".join(sorted({str(agent["command"]) for agent in agents}))
        super().__init__(
            f"{place} has no such agent",
            hint=f"its agents are: {commands}" if agents else "it names none",
        )


class NotTrusted(Refused):
    """There was no trust to take away."""

    code = "not-trusted"

    def __init__(self) -> None:
        super().__init__(
            "no such agent may run in this store",
            hint="`uwf agent trusted` lists those that may",
        )


def trust(store: Store, who: WhoIsMeant) -> Agents:
    """Let the agents that *who* means run here, and give them.

    Raises:
        NobodyMeant, NoSuchAgent, BadCommand: nobody is meant.
        NoSuchThread, NoSuchWorkflow: nor is a thread, or a workflow.
        RefLocked: git is writing the config and does not let go.
    """
    agents = find_meant(store, who)
    trust_agents(store, agents)
    return agents


def untrust(store: Store, who: WhoIsMeant) -> list[Trusted]:
    """Let the agents that *who* means run here no more, and give what was taken away.

    A command alone means every trusted agent that has it, whatever its settings.

    Raises:
        As ``trust``; NotTrusted: none of them was trusted.
        StillTrusted: they are by a file that is not ours to change.
    """
    if who.thread is None and who.workflow is None and who.command is not None:
        gone = untrust_agents(store, command=who.command)
    else:
        gone = untrust_agents(store, agents=find_meant(store, who))
    if not gone:
        raise NotTrusted
    return gone


def find_meant(store: Store, who: WhoIsMeant) -> Agents:
    """Give the agents that *who* means.

    Raises:
        As ``trust``.
    """
    if who.thread is not None and who.workflow is not None:
        raise NobodyMeant("a thread and a workflow are two places")
    if who.thread is not None:
        return _choose(f"thread {who.thread}", _of_thread(store, who.thread), who.command)
    if who.workflow is not None:
        return _choose(f"workflow {who.workflow}", _of_workflow(store, who), who.command)
    if who.command is None:
        raise NobodyMeant("no agent was named")
    split_command(who.command)
    return [{"command": who.command}]


def _of_thread(store: Store, text: str) -> Agents:
    snapshot = read_snapshot(store, get_head(store, resolve_thread(store, text)).commit)
    bound = snapshot.get_present().binding.values()
    return [get_typed(snapshot, name, AGENT_CONFIG).payload for name in dict.fromkeys(bound)]


def _of_workflow(store: Store, who: WhoIsMeant) -> Agents:
    workflow = find_workflow(store, who.workflow or "", cwd=who.cwd).workflow
    named = [workflow.default_agent, *workflow.agent_overrides.values()]
    found: Agents = []
    for agent in named:
        if agent is not None and agent not in found:
            found.append(agent)
    return found


def _choose(place: str, agents: Agents, command: str | None) -> Agents:
    chosen = [agent for agent in agents if command in (None, agent["command"])]
    if not chosen:
        raise NoSuchAgent(place, agents)
    return chosen
