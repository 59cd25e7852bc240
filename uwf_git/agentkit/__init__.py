'''For agent authors: context in, result out.

An agent is a function from the context of its turn to an answer. This is a whole one; installed
as a command, it plays any role whose schema asks for ``words``::

    import sys

    from uwf_git.agentkit import AgentContext, AgentResult, build_prompt, create_agent


    def count(context: AgentContext) -> AgentResult:
        """Count the words of the task, and show the prompt for a model."""
        words = len(context.start.prompt.split())
        return AgentResult(meta={"words": words}, content=build_prompt(context))


    main = create_agent(count)

    if __name__ == "__main__":
        sys.exit(main())

A function that calls a model may return the model's text: ``build_prompt`` asks for the role's
fields in front matter, and ``create_agent`` extracts them, or lets the configured extractor do it.
``spawn_cli`` runs another program with a prompt, ``extract`` reads a value out of a text. The step
keeps the prompt and a trace: ``record_prompt`` and ``trace`` add what the kit cannot know.

Importing the kit opens no store and is cheap; the store is opened when the context is loaded.
'''

from typing import TYPE_CHECKING, Any

from uwf_git.agentkit.ladder import Extracted, NoMeta, extract_meta
from uwf_git.agentkit.llm.endpoint import extract
from uwf_git.agentkit.running import create_agent
from uwf_git.agentkit.turn import (
    AgentResult,
    build_prompt,
    load_context,
    print_result,
    record_prompt,
    trace,
)
from uwf_git.engine.turn_context import (
    AgentContext,
    BranchStep,
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

if TYPE_CHECKING:
    from uwf_git.agentkit.programs.command import spawn_cli

__all__ = [
    "AgentContext",
    "AgentResult",
    "BranchStep",
    "ExtractContext",
    "Extracted",
    "InputFile",
    "LastError",
    "ModeratorContext",
    "NoMeta",
    "Node",
    "Rejection",
    "Role",
    "Start",
    "Step",
    "Try",
    "Workflow",
    "build_extract_context",
    "build_prompt",
    "create_agent",
    "extract",
    "extract_meta",
    "load_context",
    "parse_context",
    "print_result",
    "record_prompt",
    "spawn_cli",
    "trace",
]


def __getattr__(name: str) -> Any:
    # Programs cost 10 ms to import, and most agents start none.
    if name == "spawn_cli":
        from uwf_git.agentkit.programs.command import spawn_cli  # noqa: PLC0415 (see above)

        return spawn_cli
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
