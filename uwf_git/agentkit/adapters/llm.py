"""uwf-llm: one call of a model plays a role.

Owns: the program uwf-llm: a prompt in, an answer out, no tools.
Knows nothing of: what is said to the model (llm_turns.py), HTTP, any provider's words.
Always true: the way to a model is imported when it is asked: help and wrong words do without.
"""

import sys
from typing import TYPE_CHECKING

from uwf_git.agentkit.adapter import Answer, Asked
from uwf_git.agentkit.endpoint import ENDPOINT_KEYS
from uwf_git.agentkit.playing import adapter_main

if TYPE_CHECKING:
    # See LlmAdapter.ask.
    from uwf_git.agentkit.llm_turns import LlmTurns
    from uwf_git.agentkit.patience import Patience

_ABOUT = """\
Play roles with one call of a model: no tools, no files, the prompt in and an answer out.
Any endpoint will do that speaks as OpenAI does (chat completions), or as Anthropic does.
The key comes from the environment alone: OPENAI_API_KEY, ANTHROPIC_API_KEY, or the
variable that key-env names; an endpoint that wants none gets none.
"""


class LlmAdapter:
    """An ``Adapter`` that asks a model once."""

    name = "llm"
    takes_schema = True
    resumes = True

    def __init__(self, *, patience: "Patience | None" = None) -> None:
        self._patience = patience
        self._turns: LlmTurns | None = None

    def ask(self, asked: Asked) -> Answer:
        """Ask the model once.

        Raises:
            NoAnswer: there is none.
            BadUsage: a setting is wrong.
        """
        # http.client and ssl come with it, for 20 ms.
        from uwf_git.agentkit.llm_turns import LlmTurns  # noqa: PLC0415 (see above)

        if self._turns is None:
            self._turns = LlmTurns(self._patience)
        return self._turns.ask(asked)


# There is no program, and its conversations end with this process.
_WITHOUT = ("permission", "args", "program", "env", "silence", "resume")

main = adapter_main(LlmAdapter(), about=_ABOUT, keys=ENDPOINT_KEYS, without=_WITHOUT)

if __name__ == "__main__":
    sys.exit(main())
