"""`uwf thread context --prompt`: what the agent whose turn it is should be told.

Owns: the way from a thread to its prompt, for agents in any language.
Knows nothing of: what stands in one (engine/prompt.py).
Always true: it is the prompt that the kit builds from the same context.
"""

from uwf_git.commands.thread_context import get_context
from uwf_git.engine.prompt import build_prompt
from uwf_git.engine.turn_context import parse_context
from uwf_git.store.store import Store


def get_prompt(store: Store, text: str, *, role: str | None = None) -> str:
    """Give the prompt with which *role* (None is whose turn it is) would be asked now.

    Raises:
        As ``get_context``.
    """
    return build_prompt(parse_context(get_context(store, text, role=role)))
