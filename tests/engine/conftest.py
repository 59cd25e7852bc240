"""Fixtures of prompts: the context of a turn, as in the tests of the kit."""

from agentkit.conftest import context, document

__all__ = ["context", "document"]
