"""One call of a model, whichever endpoint it is behind.

Owns: the way from a request to a reply: shape, POST, patience, the words for what went wrong.
Knows nothing of: what is asked, what is done with the answer.
Always true: one call is one answer or one ``NoAnswer``; an answer that was cut off or filtered is
none; a key leaves this process in one header only.
Source: POST, not streamed: a step needs the whole answer anyway.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from uwf_git.agentkit import chat_anthropic, chat_openai
from uwf_git.agentkit.adapter import Answer, NoAnswer
from uwf_git.agentkit.endpoint import Endpoint
from uwf_git.agentkit.http_json import HttpReply, HttpRequest, NoReply
from uwf_git.agentkit.model_errors import (
    RequestRefused,
    explain_no_reply,
    read_document,
    refuse_shape,
)
from uwf_git.agentkit.model_words import ModelReply, ModelRequest
from uwf_git.agentkit.patience import NO_HURRY, Patience, post_patiently
from uwf_git.agents.one_line import on_one_line

DEFAULT_TIMEOUT_S = 600.0
"""For one answer, all tries together: thinking models take minutes."""


def say_on_stderr(line: str) -> None:
    """Say *line* where who watches the step sees it."""
    sys.stderr.write(on_one_line(line) + "\n")
    sys.stderr.flush()


class Model:
    """A model that can be asked. It learns, for as long as it lives, what its endpoint takes."""

    def __init__(
        self,
        endpoint: Endpoint,
        environ: Mapping[str, str],
        patience: Patience = NO_HURRY,
        say: Callable[[str], None] = say_on_stderr,
    ) -> None:
        self.endpoint = endpoint
        self._environ = environ
        self._patience = patience
        self._say = say
        self._limit_name = "max_tokens"
        self.refused: set[str] = set()
        """The ways of asking for an object that the endpoint has turned out not to take."""

    def ask(self, request: ModelRequest, *, timeout_s: float | None = None) -> ModelReply:
        """Ask once, with patience.

        Raises:
            NoAnswer: there is none; ``RequestRefused`` if another request might have one.
            BadUsage: the URL or a proxy is none.
        """
        deadline = time.monotonic() + (timeout_s or DEFAULT_TIMEOUT_S)
        try:
            reply = self._post(request, deadline)
        except RequestRefused as refusal:
            other = chat_openai.wants_other_limit(refusal.message, self._limit_name)
            if self.endpoint.api != "openai" or other is None:
                raise
            self._limit_name = other
            reply = self._post(request, deadline)
        return _check(reply, self.endpoint)

    def _post(self, request: ModelRequest, deadline: float) -> ModelReply:
        try:
            http = post_patiently(
                self._build(request),
                self._patience,
                deadline=deadline,
                environ=self._environ,
                say=self._say,
            )
        except NoReply as failure:
            raise explain_no_reply(self.endpoint, failure) from failure
        return self._read(http)

    def _build(self, request: ModelRequest) -> HttpRequest:
        endpoint = self.endpoint
        if endpoint.api == "openai":
            url, own = chat_openai.build_url(endpoint), chat_openai.build_headers(endpoint)
            body = chat_openai.build_body(endpoint, request, limit_name=self._limit_name)
        else:
            url, own = chat_anthropic.build_url(endpoint), chat_anthropic.build_headers(endpoint)
            body = chat_anthropic.build_body(endpoint, request)
        # Some gateways turn away what calls itself a Python library.
        headers = {"Content-Type": "application/json", "User-Agent": "uwf", **own}
        return HttpRequest(url, headers, _encode(body))

    def _read(self, http: HttpReply) -> ModelReply:
        document = read_document(self.endpoint, http, now_s=time.time())
        is_openai = self.endpoint.api == "openai"
        parse = chat_openai.parse_reply if is_openai else chat_anthropic.parse_reply
        reply = parse(document)
        if reply is None:
            raise refuse_shape(self.endpoint)
        return reply


def _encode(body: Mapping[str, Any]) -> bytes:
    """Write *body* as JSON; half surrogates, which no endpoint takes, become U+FFFD."""
    text = json.dumps(body, ensure_ascii=False)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _check(reply: ModelReply, endpoint: Endpoint) -> ModelReply:
    """Let pass what is an answer."""
    said = reply.said
    partial = Answer(text=said.text, usage=reply.usage)
    if reply.stop == "too-long":
        raise NoAnswer(
            "too-long",
            f"the answer of {endpoint.model} was cut off at the most tokens of one answer",
            hint=f"allow more: git config --global {endpoint.section}.maxTokens 32000",
            partial=partial,
        )
    if reply.stop == "filtered":
        message = f"the content filter of {endpoint.model} stopped the answer"
        raise NoAnswer("model-error", message, partial=partial)
    if not said.text.strip() and not said.calls:
        raise NoAnswer("no-result", f"{endpoint.model} answered with nothing", partial=partial)
    return reply
