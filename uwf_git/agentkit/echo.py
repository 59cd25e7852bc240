"""A stand-in agent for tests, and for trying a workflow without a model.

Call it as ``python -m uwf_git.agentkit.echo <thread-id>``. Its content is the prompt that a real
agent would get.
"""

import sys

from uwf_git.agentkit.context import AgentContext
from uwf_git.agentkit.result import AgentResult
from uwf_git.agentkit.running import create_agent
from uwf_git.engine.prompt import build_prompt


def echo(context: AgentContext) -> AgentResult:
    """Return the turn as meta, and the prompt as content."""
    meta = {
        "echo": context.start.prompt,
        "role": context.current_role.name,
        "visit": context.visit,
        "attempt": context.attempt,
    }
    return AgentResult(meta, build_prompt(context))


main = create_agent(echo)

if __name__ == "__main__":
    sys.exit(main())
