"""One call of a model: build the request, post it with retries, read the whole reply.

An answer that was cut off or filtered is an ``AskFailed``. The key leaves this process in one
header only.
"""

import json
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from uwf_git.agentkit.adapter import AdapterAnswer, AskFailed, FailureKind, classify_status
from uwf_git.agentkit.llm import anthropic, openai
from uwf_git.agentkit.llm.endpoint import Endpoint
from uwf_git.agentkit.llm.http_client import (
    DEFAULT_RETRIES,
    HttpClient,
    HttpReply,
    HttpRequest,
    NoReply,
    RetryPolicy,
    find_wait_s,
    post_with_retries,
    split_url,
)
from uwf_git.agentkit.llm.messages import ModelReply, ModelRequest
from uwf_git.agentkit.records import find
from uwf_git.agents.reply import on_one_line, show_beginning
from uwf_git.model.text import render_time

# The failures that an endpoint's replies mean, with messages and hints, never with the key.

_OK = 200
_REDIRECTS = range(300, 400)
_NOT_TAKEN = {400, 422}
_NOT_FOUND = 404
_TOO_MANY = 429
_AUTH = {401, 403}

_LONGEST_MESSAGE = 300

# Compiled when needed: that takes 2 ms, and most replies are not refusals.
_TOO_LONG = (
    r"(?i)context.{0,10}(length|window|size)|maximum.{0,12}(context|tokens|length)"
    r"|too (long|large|many (input )?tokens)|exceeds?.{0,30}token"
)
# max_tokens limits the answer; a shorter prompt does not help.
_OWN_LIMIT = r"(?i)max_(completion_|output_)?tokens"


class RequestRefused(AskFailed):
    """The endpoint refuses this request; it may accept another form."""

    code = "request-refused"


def explain_no_reply(endpoint: Endpoint, failure: NoReply) -> AskFailed:
    kinds: dict[str, FailureKind] = {"timed-out": "timed-out", "too-much": "too-much-output"}
    hints = {
        "unreachable": f"is it running? elsewhere: git config --global {endpoint.section}.url URL",
        "unknown-host": f"set the right one: git config --global {endpoint.section}.url URL",
        "untrusted": "SSL_CERT_FILE names a file of certificates to trust",
        "timed-out": f"allow more time: git config --global {endpoint.section}.timeout 1800",
    }
    kind = kinds.get(failure.trouble, "model-error")
    return AskFailed(kind, failure.message, hint=hints.get(failure.trouble))


def read_document(endpoint: Endpoint, reply: HttpReply, *, now_s: float) -> dict[str, Any]:
    document = _parse(reply.body)
    error = find(document, dict, "error")
    if reply.status != _OK or error:
        raise _explain(endpoint, reply, document, now_s=now_s)
    if document is None:
        raise _no_json(endpoint, reply)
    return document


def refuse_shape(endpoint: Endpoint) -> AskFailed:
    """Return the failure for JSON that is not a reply of such an endpoint."""
    other = "anthropic" if endpoint.api == "openai" else "openai"
    return AskFailed(
        "bad-output",
        f"{_host(endpoint)} answers with JSON that is not an answer of a model",
        hint=f"if it has the {other} API: git config --global {endpoint.section}.api {other}",
    )


def _explain(
    endpoint: Endpoint, reply: HttpReply, document: dict[str, Any] | None, *, now_s: float
) -> AskFailed:
    status = _status(reply, document)
    said = _message(endpoint, reply, document)
    host = _host(endpoint)
    told = f"{host} answers {status}: {said}" if said else f"{host} answers {status}"
    if status in _REDIRECTS:
        target = reply.headers.get("location", "another place")
        message = f"{host} redirects to {on_one_line(target):.200}; the key is not sent there"
        hint = f"if you trust it: git config --global {endpoint.section}.url URL"
        return AskFailed("model-error", message, hint=hint)
    if status in _AUTH:
        other = f"git config --global {endpoint.section}.keyEnv NAME"
        hint = f"put the key in {endpoint.key_name}, or name another variable: {other}"
        return AskFailed("auth", _tell_auth(endpoint, told, status), hint=hint)
    if status == _TOO_MANY:
        return _limited(endpoint, reply, told, now_s=now_s)
    if status == _NOT_FOUND:
        hint = f"see {endpoint.section}.model and {endpoint.section}.url ({endpoint.url:.200})"
        return AskFailed("usage", f"{told} (model {endpoint.model:.100})", hint=hint)
    if status in _NOT_TAKEN and not _is_too_long(said, document):
        return RequestRefused("model-error", told)
    if status in _NOT_TAKEN:
        return AskFailed("too-long", told, hint="the prompt is more than the model can read")
    # An endpoint reports errors in JSON; a gateway before it does not.
    doubt = f"is {endpoint.section}.url right ({endpoint.url:.200})?" if document is None else None
    return AskFailed(classify_status(status), told, hint=doubt)


def _status(reply: HttpReply, document: dict[str, Any] | None) -> int:
    """Return the status; for an error in a reply with 200, the error's own."""
    if reply.status != _OK:
        return reply.status
    for key in ("code", "status"):
        value = find(document, int, "error", key) or find(document, str, "error", key)
        if str(value).isdecimal():
            return int(str(value)[:3])
    return 500


def _message(endpoint: Endpoint, reply: HttpReply, document: dict[str, Any] | None) -> str:
    """Return the error message, on one line, without the key."""
    said = (
        find(document, str, "error", "message")
        or find(document, str, "error")
        or find(document, str, "message")
        or find(document, str, "detail")
    )
    if said is None:
        # A page of HTML says no more than the status.
        text = reply.body[:2_000].decode(errors="replace")
        said = "" if text.lstrip().startswith("<") else show_beginning(text)
    if endpoint.key:
        said = said.replace(endpoint.key, "…")
    return on_one_line(said)[:_LONGEST_MESSAGE]


def _tell_auth(endpoint: Endpoint, told: str, status: int) -> str:
    if endpoint.key is None:
        return f"{told}; no key was sent, since {endpoint.key_name} is not set"
    # 403 may be about a region or a model too.
    what = "does not accept" if status == min(_AUTH) else "may not allow this with"
    return f"{told}; it {what} the key in {endpoint.key_name}"


def _limited(endpoint: Endpoint, reply: HttpReply, told: str, *, now_s: float) -> AskFailed:
    wait_s = find_wait_s(reply.headers, now_s=now_s, is_limited=True)
    reset_at = None if wait_s is None else round((now_s + wait_s) * 1000)
    until = "" if reset_at is None else f"; try again at {render_time(reset_at)}"
    hint = f"or use another model or endpoint: {endpoint.section}.model, {endpoint.section}.url"
    facts: dict[str, Any] = {} if reset_at is None else {"resetAt": reset_at}
    return AskFailed("rate-limit", told + until, code="rate-limited", hint=hint, **facts)


def _is_too_long(said: str, document: dict[str, Any] | None) -> bool:
    code = find(document, str, "error", "code") or ""
    if code == "context_length_exceeded":
        return True
    return bool(re.search(_TOO_LONG, said)) and not re.search(_OWN_LIMIT, said)


def _no_json(endpoint: Endpoint, reply: HttpReply) -> AskFailed:
    kind = on_one_line(reply.headers.get("content-type", "no content type"))[:60]
    beginning = show_beginning(reply.body[:400].decode(errors="replace"), limit=60)
    size = f"{len(reply.body):,} bytes of {kind}"
    shown = f"; it begins: {beginning}" if beginning else ""
    return AskFailed(
        "bad-output",
        f"{_host(endpoint)} answers {reply.status} with {size}, not JSON{shown}",
        hint=f"is {endpoint.section}.url right ({endpoint.url:.200})? most end in /v1",
    )


def _parse(body: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _host(endpoint: Endpoint) -> str:
    return split_url(endpoint.url).netloc


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
        endpoint, form = self.endpoint, self._form
        # Some gateways refuse the user agent of a Python library.
        headers = {"Content-Type": "application/json", "User-Agent": "uwf"}
        body = form.build_body(endpoint, request, limit_name=self._limit_name)
        headers |= form.build_headers(endpoint)
        asked = HttpRequest(form.build_url(endpoint), headers, _encode(body))
        try:
            http = post_with_retries(
                self._client.post, asked, self._retries, deadline=deadline, say=self._say
            )
        except NoReply as failure:
            raise explain_no_reply(endpoint, failure) from failure
        document = read_document(endpoint, http, now_s=time.time())
        reply: ModelReply | None = form.parse_reply(document)
        if reply is None:
            raise refuse_shape(endpoint)
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
