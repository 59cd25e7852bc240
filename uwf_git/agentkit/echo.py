"""A stand-in agent: it answers with what it was asked.

Owns: nothing; it is for tests, and for trying a workflow out before a model is paid.
Call it as ``python -m uwf_git.agentkit.echo <thread-id>``.
Always true: the meta repeats the turn, the content is the prompt that a real agent would get.
"""

import sys

from uwf_git.agentkit.context import AgentContext
from uwf_git.agentkit.result import AgentResult
from uwf_git.agentkit.running import create_agent
from uwf_git.engine.prompt import build_prompt


def echo(context: AgentContext) -> AgentResult:
    """Answer with the question."""
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
