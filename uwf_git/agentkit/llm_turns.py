"""LLM turns: one question, one answer of a model.

Owns: what is asked of the model, the conversations that go on, what is recorded of an answer.
Knows nothing of: HTTP, any provider's words.
Always true: one question is one answer of the model; a correction goes on with the conversation,
which lasts as long as this process.
"""

from typing import Any

from uwf_git.agentkit.adapter import Answer, Asked
from uwf_git.agentkit.conversation import Conversations
from uwf_git.agentkit.endpoint import Endpoint, read_endpoint
from uwf_git.agentkit.http_json import split_url
from uwf_git.agentkit.model_call import Model, say_on_stderr
from uwf_git.agentkit.model_words import Message, ModelReply, ModelRequest
from uwf_git.agentkit.patience import NO_HURRY, Patience
from uwf_git.agentkit.role_object import GUIDE, read_answer, wanted_of
from uwf_git.agentkit.step_files import extend_prompt
from uwf_git.agentkit.structured import Got, ask_for_object


class LlmTurns:
    """The questions of one process."""

    def __init__(self, patience: Patience | None = None) -> None:
        self._patience = patience or NO_HURRY
        self._conversations = Conversations("llm")
        self._models: dict[Endpoint, Model] = {}

    def ask(self, asked: Asked) -> Answer:
        """Ask the model once.

        Raises:
            NoAnswer: there is none.
            BadUsage: a setting is wrong.
        """
        model = self._model(asked)
        session, messages = self._conversations.begin(asked.prompt, asked.session)
        say_on_stderr(f"asking {model.endpoint.model} at {split_url(model.endpoint.url).netloc}")
        if asked.schema is None:
            reply = model.ask(ModelRequest(messages), timeout_s=asked.timeout_s)
            self._conversations.keep(session, (*messages, reply.said))
            usage = {**reply.usage, "turns": 1}
            return _answer(reply.said.text, None, session, usage=usage, event=_tell(reply))
        got = ask_for_object(
            model, ModelRequest(messages), wanted_of(asked.schema), timeout_s=asked.timeout_s
        )
        if got.way != "plain":
            extend_prompt(asked.step_dir, asked.prompt, f"{asked.prompt}\n{GUIDE}\n")
        return self._keep(got, asked, session, messages)

    def _model(self, asked: Asked) -> Model:
        endpoint = read_endpoint(asked.settings, asked.environ, section="uwf.llm")
        if endpoint not in self._models:
            self._models[endpoint] = Model(endpoint, asked.environ, self._patience)
        return self._models[endpoint]

    def _keep(self, got: Got, asked: Asked, session: str, messages: tuple[Message, ...]) -> Answer:
        self._conversations.keep(session, (*messages, got.reply.said))
        found = None if asked.schema is None else read_answer(got.value, asked.schema)
        text = got.reply.said.text if found is None or not found.content else found.content
        meta = None if found is None else found.meta
        event = {**_tell(got.reply), "way": got.way}
        return _answer(text, meta, session, usage=got.usage, event=event)


def _answer(text: str, meta: Any, session: str, *, usage: Any, event: dict[str, Any]) -> Answer:
    return Answer(text=text, structured=meta, session=session, usage=usage, trace=(event,))


def _tell(reply: ModelReply) -> dict[str, Any]:
    return {"type": "turn", "model": reply.model, "usage": dict(reply.usage)}
