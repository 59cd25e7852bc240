"""The context of a turn, for agent authors: engine/turn_context.py, which uwf itself uses."""

from uwf_git.engine.turn_context import (
    AgentContext,
    ExtractContext,
    InputFile,
    LastError,
    ModeratorContext,
    Rejection,
    Start,
    Step,
    build_extract_context,
    parse_context,
)
from uwf_git.engine.turn_context import NodeView as Node
from uwf_git.engine.turn_context import RoleView as Role
from uwf_git.engine.turn_context import TryView as Try
from uwf_git.engine.turn_context import WorkflowView as Workflow

__all__ = [
    "AgentContext",
    "ExtractContext",
    "InputFile",
    "LastError",
    "ModeratorContext",
    "Node",
    "Rejection",
    "Role",
    "Start",
    "Step",
    "Try",
    "Workflow",
    "build_extract_context",
    "parse_context",
]
