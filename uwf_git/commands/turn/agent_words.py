"""The words for agents that many rooms need, in a module that imports nothing."""

from collections.abc import Mapping
from typing import Any

CONFIG_NAME = "uwf.agent"
"""The setting with the agent of roles that have none."""

PERSON = "human"
"""The command of a role that a person plays."""

FUNCTION = "python:"
"""What the command of a role that a Python function plays begins with."""


KEPT_PROGRAMS = frozenset({PERSON, "uwf-human", "uwf-shell", "uwf-check"})
"""The programs that a command for every role leaves: of people, and of checks of others' work."""


def settings_by_role(agents: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what AgentConfig payloads have besides the command; roles without any are absent."""
    settings = {
        role: {name: value for name, value in agent.items() if name != "command"}
        for role, agent in agents.items()
    }
    return {role: each for role, each in settings.items() if each}
