"""Agents that are typed: ``[ROLE=]CMD``, or ``[ROLE=]{…}`` with the settings of an agent.

Source: seed 001 (``env``, ``timeout``).
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from uwf_git.agents.command_line import agent_name, split_command
from uwf_git.commands.turn.agent_words import KEPT_PROGRAMS
from uwf_git.errors import Refused
from uwf_git.model.merge_patch import merge_patch
from uwf_git.model.names import ThreadId
from uwf_git.model.workflow import END, Workflow

_ROLE_WORD = re.compile(r"[^\s/=\"'\\]+")
_BEGINS_SETTINGS = "{"

_Payload = dict[str, Any]


def no_such_role(role: str, workflow: Workflow) -> Refused:
    """Say that `--agent ROLE=CMD` names a role that the workflow does not have."""
    return Refused(
        f"workflow {workflow.name} has no role {role}",
        code="no-such-role",
        hint=f"its roles are {', '.join(workflow.roles)}",
        role=role,
        roles=list(workflow.roles),
    )


def role_not_next(thread: ThreadId, named: str, role: str) -> Refused:
    """Say that `--agent ROLE=CMD` of one step names a role whose turn it is not."""
    turn = "the workflow is at its end" if role == END else f"it is the turn of {role}"
    return Refused(
        f"role {named} is not next in thread {thread}: {turn}",
        code="role-not-next",
        hint=f"leave out --agent {named}=…; `uwf thread run {thread} --agent {named}=…` has it "
        f"for every turn of {named} in that run, and `uwf thread amend` from now on",
        thread=thread,
        role=named,
        next=None if role == END else role,
    )


class TypedAgent(NamedTuple):
    """One value of ``--agent``."""

    role: str | None
    """The role that it names; None: it is for every role."""

    settings: _Payload
    """A JSON merge patch of an AgentConfig payload."""

    @property
    def is_bare_command(self) -> bool:
        """Whether it is a command for every role."""
        return self.role is None and "command" in self.settings

    def is_for(self, role: str) -> bool:
        """Check whether it is for *role*."""
        return self.role is None or self.role == role


def read_typed(workflow: Workflow, texts: Iterable[str]) -> list[TypedAgent]:
    """Read values of ``--agent``; those for every role come first, so that others override them.

    Raises:
        Refused: one names a role that the workflow does not have.
        BadCommand: a command cannot be split into words.
        Refused: settings are invalid.
    """
    typed = [_read(text, workflow) for text in texts]
    return sorted(typed, key=lambda each: each.role or "")


def leave_kept(workflow: Workflow, role: str, typed: list[TypedAgent]) -> list[TypedAgent]:
    """Return *typed* for *role*, without commands for every role if the file keeps it from them.

    It does so where its ``agentOverrides`` bind a person, or a command that checks the work.
    """
    bound = workflow.agent_overrides.get(role)
    if bound is None or agent_name(bound["command"]) not in KEPT_PROGRAMS:
        return typed
    return [each for each in typed if not each.is_bare_command]


def check_next(thread: ThreadId, workflow: Workflow, texts: Iterable[str], *, role: str) -> None:
    """Check that the values of ``--agent`` name no other role than *role*, whose turn it is.

    Raises:
        Refused: one does.
        What ``read_typed`` raises.
    """
    for each in read_typed(workflow, texts):
        if not each.is_for(role):
            raise role_not_next(thread, str(each.role), role)


class LaidOver(NamedTuple):
    """An agent after what was typed for its role."""

    agent: _Payload
    """The AgentConfig payload."""

    is_own: bool
    """Its command and its environment were typed, or belong to an agent that may run here."""


def lay_over(
    role: str, base: _Payload | None, typed: Iterable[TypedAgent], *, may_run: bool, keeps: bool
) -> LaidOver:
    """Lay what was *typed* for *role*, in this order, over its agent *base*.

    A command replaces all of *base*, unless *keeps*: then only what is named changes. Settings
    without a command always change *base*. *may_run*: *base* may run in this store.

    Raises:
        Refused: there is no command.
    """
    agent, own = base or {}, (base or {}) if may_run else {}
    for each in typed:
        if "command" in each.settings and not keeps:
            agent, own = {}, {}
        agent, own = _apply(agent, each.settings), _apply(own, each.settings)
    if "command" not in agent:
        raise Refused(
            f"role {role} has no agent, and the settings for it name no command",
            code="command-unnamed",
            hint=f"""name one: --agent '{role}={{"command": "CMD", …}}'""",
            role=role,
        )
    # An environment can make a harmless command harmful.
    return LaidOver(agent, all(agent.get(part) == own.get(part) for part in ("command", "env")))


def _apply(agent: _Payload, settings: _Payload) -> _Payload:
    changed: _Payload = merge_patch(agent, settings)
    if not changed.get("env", True):
        # An agent has one name, whether its last variable was removed or it never had any.
        del changed["env"]
    return changed


def _read(text: str, workflow: Workflow) -> TypedAgent:
    role, agent = _split_role(text, workflow)
    if not agent.lstrip().startswith(_BEGINS_SETTINGS):
        split_command(agent)
        return TypedAgent(role, {"command": agent})
    from uwf_git.model.definition.agents import read_agent_settings  # noqa: PLC0415 (PyYAML: 30 ms, and few type settings)

    name = "--agent" if role is None else f"--agent {role}"
    return TypedAgent(role, read_agent_settings(agent, name=name))


def _split_role(text: str, workflow: Workflow) -> tuple[str | None, str]:
    """Read ``ROLE=CMD`` or ``CMD``; a command may contain ``=`` as well."""
    word, equals, command = text.partition("=")
    if not equals or text.lstrip().startswith(_BEGINS_SETTINGS):
        return None, text
    if word in workflow.roles:
        return word, command
    if _ROLE_WORD.fullmatch(word):
        # No command begins like this (only a shell reads NAME=VALUE first): a role was meant.
        raise no_such_role(word, workflow)
    return None, text
