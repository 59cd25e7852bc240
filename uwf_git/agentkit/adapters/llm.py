"""uwf-llm: one call of a model plays a role: a prompt in, an answer out, no tools.

The modules that call a model are imported when it is called: help and usage errors need none.
"""

import sys
from typing import TYPE_CHECKING

from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AdapterQuestion
from uwf_git.agentkit.llm.endpoint import ENDPOINT_KEYS
from uwf_git.agentkit.programs.playing import adapter_main

if TYPE_CHECKING:
    # See LlmAdapter.ask.
    from uwf_git.agentkit.llm.retries import RetryPolicy
    from uwf_git.agentkit.llm.turns import LlmTurns

_ABOUT = """\
Play roles with one call of a model: no tools, no files, the prompt in and an answer out.
Any endpoint with the API of OpenAI (chat completions) or of Anthropic will do.
The key comes from the environment alone: OPENAI_API_KEY, ANTHROPIC_API_KEY, or the
variable that key-env names; an endpoint that wants none gets none.
"""


class LlmAdapter:
    """An ``Adapter`` that calls a model once."""

    name = "llm"
    takes_schema = True
    resumes = True

    def __init__(self, *, retries: "RetryPolicy | None" = None) -> None:
        self._retries = retries
        self._turns: LlmTurns | None = None

    def ask(self, question: AdapterQuestion) -> AdapterAnswer:
        """Call the model once."""
        # The forms of the requests cost 10 ms.
        from uwf_git.agentkit.llm.turns import LlmTurns  # noqa: PLC0415 (see above)

        if self._turns is None:
            self._turns = LlmTurns(self._retries)
        return self._turns.ask(question)


# These settings are about a program; conversations end with this process.
_WITHOUT = ("permission", "args", "program", "env", "silence", "resume")

main = adapter_main(LlmAdapter(), about=_ABOUT, keys=ENDPOINT_KEYS, without=_WITHOUT)

if __name__ == "__main__":
    sys.exit(main())
