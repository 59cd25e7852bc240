"""uwf-llm: one call of a model plays a role: a prompt in, an answer out, no tools."""

from typing import Any

from uwf_git.agentkit.ladder import add_guide, build_wanted_object, read_answer
from uwf_git.agentkit.llm.endpoint import ENDPOINT_KEYS, Endpoint, read_endpoint
from uwf_git.agentkit.llm.http_client import split_url
from uwf_git.agentkit.llm.messages import Conversations, ModelRequest
from uwf_git.agentkit.llm.model import Model, ask_for_object, say_on_stderr
from uwf_git.agentkit.programs.playing import adapter_main
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, extend_prompt

_ABOUT = """\
Play roles with one call of a model: no tools, no files, the prompt in and an answer out.
Any endpoint with the API of OpenAI (chat completions) or of Anthropic will do.
The key comes from the environment alone: OPENAI_API_KEY, ANTHROPIC_API_KEY, or the
variable that key-env names; an endpoint that wants none gets none.
"""


class LlmAdapter:
    name = "llm"
    takes_schema = True
    resumes = True

    def __init__(self) -> None:
        self._conversations = Conversations("llm")
        self._models: dict[Endpoint, Model] = {}

    def ask(self, question: AdapterQuestion) -> AdapterAnswer:
        endpoint = read_endpoint(question.settings, question.environ, section="uwf.llm")
        model = self._models.setdefault(endpoint, Model(endpoint, question.environ))
        session, messages = self._conversations.begin(question.prompt, question.session)
        say_on_stderr(f"asking {endpoint.model} at {split_url(endpoint.url).netloc}")
        request, timeout_s = ModelRequest(messages), question.timeout_s
        event: dict[str, Any] = {"type": "turn"}
        text, meta = "", None
        if question.schema is None:
            reply = model.ask(request, timeout_s=timeout_s)
            usage = {**reply.usage, "turns": 1}
        else:
            wanted = build_wanted_object(question.schema)
            got = ask_for_object(model, request, wanted, timeout_s=timeout_s)
            if got.way != "plain":
                extend_prompt(question.step_dir, question.prompt, add_guide(question.prompt))
            text, meta = read_answer(got.value, question.schema) or ("", None)
            reply, usage, event["way"] = got.reply, dict(got.usage), got.way
        self._conversations.keep(session, (*messages, reply.said))
        return AdapterAnswer(
            text=text or reply.said.text,
            structured=meta,
            session=session,
            usage=usage,
            trace=({**event, "model": reply.model, "usage": dict(reply.usage)},),
        )


# These settings are about a program; conversations end with this process.
_WITHOUT = ("permission", "args", "program", "env", "silence", "resume")

_KEYS = {**ENDPOINT_KEYS, "timeout": "the most seconds for one answer (600 unless set)"}

main = adapter_main(LlmAdapter(), about=_ABOUT, keys=_KEYS, without=_WITHOUT)
