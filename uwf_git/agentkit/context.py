"""Context: what an agent may know, under the names that agent authors import.

Owns: nothing; turn_context.py in the engine does, since `uwf thread context --prompt` is made of
the same values.
"""

from uwf_git.engine.turn_context import (
    AgentContext,
    BadContext,
    ExtractContext,
    LastError,
    ModeratorContext,
    Role,
    Start,
    Step,
    Workflow,
    build_extract_context,
    parse_context,
)

__all__ = [
    "AgentContext",
    "BadContext",
    "ExtractContext",
    "LastError",
    "ModeratorContext",
    "Role",
    "Start",
    "Step",
    "Workflow",
    "build_extract_context",
    "parse_context",
]
