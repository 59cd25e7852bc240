"""What the tests of prompts stand on: the context of a turn, as the tests of the kit have it."""

from agentkit.conftest import context, document

__all__ = ["context", "document"]
