"""A question of uwf-llm: one call of the model, in a conversation of this process."""

from typing import Any

from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AdapterQuestion
from uwf_git.agentkit.extraction.role_object import add_guide, build_wanted_object, read_answer
from uwf_git.agentkit.llm.call import Model, say_on_stderr
from uwf_git.agentkit.llm.conversation import Conversations
from uwf_git.agentkit.llm.endpoint import Endpoint, read_endpoint
from uwf_git.agentkit.llm.http_json import split_url
from uwf_git.agentkit.llm.messages import Message, ModelReply, ModelRequest
from uwf_git.agentkit.llm.retries import DEFAULT_RETRIES, RetryPolicy
from uwf_git.agentkit.llm.structured import ObjectReply, ask_for_object
from uwf_git.agentkit.step_files import extend_prompt


class LlmTurns:
    """The models and conversations of one process."""

    def __init__(self, retries: RetryPolicy | None = None) -> None:
        self._retries = retries or DEFAULT_RETRIES
        self._conversations = Conversations("llm")
        self._models: dict[Endpoint, Model] = {}

    def ask(self, question: AdapterQuestion) -> AdapterAnswer:
        """Call the model once."""
        model = self._model(question)
        session, messages = self._conversations.begin(question.prompt, question.session)
        say_on_stderr(f"asking {model.endpoint.model} at {split_url(model.endpoint.url).netloc}")
        if question.schema is None:
            reply = model.ask(ModelRequest(messages), timeout_s=question.timeout_s)
            self._conversations.keep(session, (*messages, reply.said))
            usage = {**reply.usage, "turns": 1}
            return _answer(reply.said.text, None, session, usage=usage, event=_build_event(reply))
        got = ask_for_object(
            model,
            ModelRequest(messages),
            build_wanted_object(question.schema),
            timeout_s=question.timeout_s,
        )
        if got.way != "plain":
            extend_prompt(question.step_dir, question.prompt, add_guide(question.prompt))
        return self._keep(got, question, session, messages)

    def _model(self, question: AdapterQuestion) -> Model:
        endpoint = read_endpoint(question.settings, question.environ, section="uwf.llm")
        if endpoint not in self._models:
            self._models[endpoint] = Model(endpoint, question.environ, self._retries)
        return self._models[endpoint]

    def _keep(
        self,
        got: ObjectReply,
        question: AdapterQuestion,
        session: str,
        messages: tuple[Message, ...],
    ) -> AdapterAnswer:
        self._conversations.keep(session, (*messages, got.reply.said))
        found = None if question.schema is None else read_answer(got.value, question.schema)
        text = got.reply.said.text if found is None or not found.content else found.content
        meta = None if found is None else found.meta
        event = {**_build_event(got.reply), "way": got.way}
        return _answer(text, meta, session, usage=got.usage, event=event)


def _answer(
    text: str, meta: Any, session: str, *, usage: Any, event: dict[str, Any]
) -> AdapterAnswer:
    return AdapterAnswer(text=text, structured=meta, session=session, usage=usage, trace=(event,))


def _build_event(reply: ModelReply) -> dict[str, Any]:
    return {"type": "turn", "model": reply.model, "usage": dict(reply.usage)}
