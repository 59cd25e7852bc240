"""One call of a model: build the request, post it with retries, read the whole reply.

An answer that was cut off or filtered is an ``AskFailed``. The key leaves this process in one
header only.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AskFailed
from uwf_git.agentkit.llm import anthropic, openai
from uwf_git.agentkit.llm.endpoint import Endpoint
from uwf_git.agentkit.llm.errors import (
    RequestRefused,
    explain_no_reply,
    read_document,
    refuse_shape,
)
from uwf_git.agentkit.llm.http_client import HttpClient, HttpReply, HttpRequest, NoReply
from uwf_git.agentkit.llm.messages import ModelReply, ModelRequest
from uwf_git.agentkit.llm.retries import DEFAULT_RETRIES, RetryPolicy, post_with_retries
from uwf_git.agents.reply import on_one_line

DEFAULT_TIMEOUT_S = 600.0
"""For one answer with all retries; reasoning models take minutes."""


def say_on_stderr(line: str) -> None:
    """Write *line* to stderr, which is the live log of the step."""
    sys.stderr.write(on_one_line(line) + "\n")
    sys.stderr.flush()


class Model:
    """A model at an endpoint. It remembers which request forms the endpoint refused."""

    def __init__(
        self,
        endpoint: Endpoint,
        environ: Mapping[str, str],
        retries: RetryPolicy = DEFAULT_RETRIES,
        say: Callable[[str], None] = say_on_stderr,
    ) -> None:
        self.endpoint = endpoint
        self._form = openai if endpoint.api == "openai" else anthropic
        self._retries = retries
        self._say = say
        self._client = HttpClient(environ)
        self._limit_name = "max_tokens"
        self.refused: set[str] = set()
        """The ways of asking for an object that the endpoint does not support."""

    def ask(self, request: ModelRequest, *, timeout_s: float | None = None) -> ModelReply:
        deadline = time.monotonic() + (timeout_s or DEFAULT_TIMEOUT_S)
        try:
            reply = self._post(request, deadline)
        except RequestRefused as refusal:
            other = openai.wants_other_limit(refusal.message, self._limit_name)
            if self.endpoint.api != "openai" or other is None:
                raise
            self._limit_name = other
            reply = self._post(request, deadline)
        return _check(reply, self.endpoint)

    def _post(self, request: ModelRequest, deadline: float) -> ModelReply:
        try:
            http = post_with_retries(
                self._client.post,
                self._build(request),
                self._retries,
                deadline=deadline,
                say=self._say,
            )
        except NoReply as failure:
            raise explain_no_reply(self.endpoint, failure) from failure
        return self._read(http)

    def _build(self, request: ModelRequest) -> HttpRequest:
        endpoint, form = self.endpoint, self._form
        # Some gateways refuse the user agent of a Python library.
        headers = {"Content-Type": "application/json", "User-Agent": "uwf"}
        body = form.build_body(endpoint, request, limit_name=self._limit_name)
        return HttpRequest(
            form.build_url(endpoint), headers | form.build_headers(endpoint), _encode(body)
        )

    def _read(self, http: HttpReply) -> ModelReply:
        document = read_document(self.endpoint, http, now_s=time.time())
        reply: ModelReply | None = self._form.parse_reply(document)
        if reply is None:
            raise refuse_shape(self.endpoint)
        return reply


def _encode(body: Mapping[str, Any]) -> bytes:
    """Encode *body* as JSON; half surrogates, which no endpoint accepts, become U+FFFD."""
    text = json.dumps(body, ensure_ascii=False)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _check(reply: ModelReply, endpoint: Endpoint) -> ModelReply:
    said = reply.said
    partial = AdapterAnswer(text=said.text, usage=reply.usage)
    if reply.stop == "too-long":
        raise AskFailed(
            "too-long",
            f"the answer of {endpoint.model} was cut off at the most tokens of one answer",
            hint=f"allow more: git config --global {endpoint.section}.maxTokens 32000",
            partial=partial,
        )
    if reply.stop == "filtered":
        message = f"the content filter of {endpoint.model} stopped the answer"
        raise AskFailed("model-error", message, partial=partial)
    if not said.text.strip() and not said.calls:
        raise AskFailed("no-result", f"{endpoint.model} answered with nothing", partial=partial)
    return reply
