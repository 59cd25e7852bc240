"""A scripted fake LLM endpoint for driving real agent CLIs offline.

Standard library only, loopback only.  One process speaks five wire formats:

    POST /v1/chat/completions                     OpenAI chat (JSON and SSE)
    POST /v1/responses                            OpenAI responses (JSON and SSE)
    POST /v1/messages                             Anthropic messages (JSON and SSE)
    POST /v1/messages/count_tokens                Anthropic token count
    POST /v1beta/models/M:generateContent         Gemini (JSON)
    POST /v1beta/models/M:streamGenerateContent   Gemini (SSE)
    POST /v1beta/models/M:countTokens             Gemini token count
    GET  /v1/models, /v1beta/models, HEAD /, GET /health

The leading "/v1" or "/v1beta" is optional, so a base URL may or may not have it.

What is answered is a function of the request alone (no hidden counter), so
parallel and retried requests get the same answer.  The "script" is a list of
turns; turn N answers a request whose conversation holds N tool results after
the last plain user message (past the end, the last turn repeats).  A turn is

    {"text": "..."}                  a plain final answer
    {"json": {...}}                  an object, delivered the strictest way the
                                     request allows: native JSON-schema output,
                                     else a structured-output tool, else text
    {"run": "shell command"}         a call of whichever shell tool is offered
    {"tool": "name", "args": {...}}  a call of that exact tool; "*name" picks the first
                                     offered tool whose name ends so (MCP prefixes differ)
    {"status": 429, "message": ".."} an HTTP error; "headers": {...} are sent with it,
                                     "body": {...} instead of the wire's usual one
  plus "plain": true in a text turn, to answer plain text even where a schema or a
  structured-output tool is asked for (a model that disobeys), and
  in any turn: "delay": seconds to sleep first, "drip": seconds to sleep
  between SSE events, "hang": true to send headers then nothing until the
  client leaves or the server stops, "asked": text to count only in requests that
  hold this text; once a request holds it, the turns without "asked" do not count.

A request that offers no tools and asks for no schema (title generators, topic
detectors, summaries) is answered with the option `aside`, so that a script counts only
the agent's own turns; `aside_none` treats such requests like any other.

served_model.py and agentkit/endpoints.py serve it, in threads of a test.
"""

import argparse
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

SHELL_TOOLS = (
    "Bash",
    "bash",
    "shell",
    "exec_command",
    "shell_command",
    "run_shell_command",
    "terminal",
    "developer__shell",
    "local_shell",
    "execute_command",
)
STRUCTURED_TOOLS = (
    "StructuredOutput",
    "structured_output",
    "recipe__final_output",
    "final_output",
    "submit_result",
)
# Deeper than any schema of an agent, but for one that leads into itself.
DEEPEST = 12
USAGE_IN, USAGE_OUT = 11, 7

Json = dict[str, Any]
Call = tuple[str, Any]
Turned = tuple[Json, str, Call | None]
Events = Iterator[tuple[str | None, Any]]


def sample(schema: Any, depth: int = 0) -> Any:
    """A small instance of a JSON Schema (the common subset)."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return "x"
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return sample(schema[key][0], depth + 1)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object" or "properties" in schema:
        props = schema.get("properties", {})
        names = schema.get("required", list(props))
        return {n: sample(props.get(n, {}), depth + 1) for n in names}
    if kind == "array":
        return [sample(schema.get("items", {}), depth + 1)] * schema.get("minItems", 0)
    return sample_scalar(str(kind), schema)


def sample_scalar(kind: str, schema: Json) -> Any:
    least = schema.get("minimum", 1)
    values = {"integer": int(least), "number": least, "boolean": True, "null": None}
    return values.get(kind, "x" * max(1, schema.get("minLength", 1)))


class Ask(NamedTuple):
    """The parts of a request that matter, whatever wire it came on."""

    wire: str
    model: str
    stream: bool
    tools: dict[str, Json]
    """By name: {"schema": dict, "ns": namespace or None, "custom": bool}."""

    schema: Json | None
    results: int
    """Tool results after the last plain user message."""

    body: Json


def read_chat(body: Json, model: str, *, stream: bool) -> Ask:
    tools = {}
    for t in body.get("tools") or []:
        f = t.get("function") or t
        if f.get("name"):
            tools[f["name"]] = {"schema": f.get("parameters") or {}, "custom": False}
    rf = body.get("response_format") or {}
    schema = (
        (rf.get("json_schema") or {}).get("schema") if rf.get("type") == "json_schema" else None
    )
    if rf.get("type") == "json_object":
        schema = {}
    results = 0
    for m in body.get("messages") or []:
        role = m.get("role")
        if role == "user":
            results = 0
        elif role == "tool":
            results += 1
    return Ask("chat", model, stream, tools, schema, results, body)


def read_ask(path: str, body: Json, default_model: str) -> Ask | None:
    model, stream = body.get("model") or default_model, bool(body.get("stream"))
    found = re.search(r"/models/([^/:]+):(generateContent|streamGenerateContent)$", path)
    if path.endswith("/chat/completions"):
        return read_chat(body, model, stream=stream)
    if path.endswith("/responses"):
        return read_responses(body, model, stream=stream)
    if path.endswith("/messages"):
        return read_messages(body, model, stream=stream)
    if found:
        return read_gemini(body, found[1], stream=found[2].startswith("stream"))
    return None


def add_response_tool(tools: dict[str, Json], tool: Json, ns: str | None = None) -> None:
    kind = tool.get("type")
    if kind == "namespace":
        for inner in tool.get("tools") or []:
            add_response_tool(tools, inner, tool.get("name"))
    elif kind in {"function", "custom"} and tool.get("name"):
        schema = tool.get("parameters") or {}
        tools[tool["name"]] = {"schema": schema, "custom": kind == "custom", "ns": ns}
    elif kind:
        tools.setdefault(tool.get("name") or kind, {"schema": {}, "custom": False, "builtin": True})


def read_responses(body: Json, model: str, *, stream: bool) -> Ask:
    tools: dict[str, Json] = {}
    for t in body.get("tools") or []:
        add_response_tool(tools, t)
    fmt = (body.get("text") or {}).get("format") or {}
    schema = fmt.get("schema") if fmt.get("type") == "json_schema" else None
    given = body.get("input")
    results = 0
    for m in given if isinstance(given, list) else []:
        kind = m.get("type", "message")
        if kind == "message" and m.get("role") == "user":
            results = 0
        elif kind.endswith("_call_output"):
            results += 1
        elif kind == "additional_tools":
            for t in m.get("tools") or []:
                add_response_tool(tools, t)
    return Ask("responses", model, stream, tools, schema, results, body)


def read_messages(body: Json, model: str, *, stream: bool) -> Ask:
    tools = {
        t["name"]: {"schema": t.get("input_schema") or {}, "custom": False}
        for t in body.get("tools") or []
        if t.get("name")
    }
    fmt = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    schema = fmt.get("schema") if fmt.get("type") == "json_schema" else None
    results = 0
    for m in body.get("messages") or []:
        if m.get("role") == "user":
            blocks = m["content"] if isinstance(m.get("content"), list) else []
            got = sum(1 for b in blocks if b.get("type") == "tool_result")
            results = results + got if got else 0
    return Ask("messages", model, stream, tools, schema, results, body)


def read_gemini(body: Json, model: str, *, stream: bool) -> Ask:
    tools = {}
    for t in body.get("tools") or []:
        for f in t.get("functionDeclarations") or t.get("function_declarations") or []:
            tools[f["name"]] = {
                "schema": f.get("parametersJsonSchema") or f.get("parameters") or {},
                "custom": False,
            }
    cfg = body.get("generationConfig") or {}
    schema = cfg.get("responseJsonSchema") or cfg.get("responseSchema")
    if schema is None and cfg.get("responseMimeType") == "application/json":
        schema = {}
    results = 0
    for m in body.get("contents") or []:
        if m.get("role") in ("user", "function"):
            got = sum(1 for p in m.get("parts") or [] if "functionResponse" in p)
            results = results + got if got else 0
    return Ask("gemini", model, stream, tools, schema, results, body)


def resolve(ask: Ask, turns: list[Json], aside: str | None) -> Turned:
    """(turn, text, call): what to answer. call is (name, args) or None."""
    if not ask.tools and ask.schema is None and aside is not None:
        return {"aside": True}, aside, None
    said = json.dumps(ask.body, ensure_ascii=False)
    meant = [turn for turn in turns if "asked" in turn and turn["asked"] in said]
    turns = meant or [turn for turn in turns if "asked" not in turn]
    turn = turns[min(ask.results, len(turns) - 1)]
    if "status" in turn:
        return turn, "", None
    if "run" in turn:
        return resolve_run(ask, turn)
    if "tool" in turn:
        return resolve_tool(ask, turn)
    if turn.get("plain"):
        return turn, turn.get("text", "ok"), None
    return resolve_object(ask, turn)


def resolve_run(ask: Ask, turn: Json) -> Turned:
    name = next((n for n in SHELL_TOOLS if ask.tools.get(n)), None)
    if name is None:
        return turn, "no shell tool was offered", None
    schema = ask.tools[name]["schema"]
    args = sample(schema) if schema else {}
    props = schema.get("properties", {})
    key = "cmd" if "cmd" in props and "command" not in props else "command"
    is_list = (props.get(key) or {}).get("type") == "array"
    args[key] = ["bash", "-lc", turn["run"]] if is_list else turn["run"]
    for flag in ("is_background", "run_in_background", "background"):
        if flag in args:
            args[flag] = False
    if "timeout" in args:
        args["timeout"] = 30000
    return turn, "", (name, args)


def resolve_tool(ask: Ask, turn: Json) -> Turned:
    name = turn["tool"]
    if name.startswith("*"):
        name = next((n for n in ask.tools if n.endswith(name[1:])), None)
        if name is None:
            return turn, "no tool named " + turn["tool"] + " was offered", None
    return turn, "", (name, turn.get("args", {}))


def resolve_object(ask: Ask, turn: Json) -> Turned:
    asked = next((n for n in STRUCTURED_TOOLS if n in ask.tools), None)
    if "json" in turn or ask.schema is not None:
        value = turn["json"] if "json" in turn else sample(ask.schema)
        if ask.schema is None and asked is not None:
            return turn, "", (asked, value)
        return turn, json.dumps(value), None
    if asked is not None and not ask.results:
        # A text turn, but the caller insists on its tool.
        return turn, turn.get("text", ""), (asked, sample(ask.tools[asked]["schema"]))
    return turn, turn.get("text", "ok"), None


# ---- renderers: each yields (event name or None, object or "[DONE]") ---------


def pieces_of(text: str) -> list[str]:
    return re.findall(r"(?s).{1,24}", text)


def chat_call(call: Call, rid: str) -> Json:
    function = {"name": call[0], "arguments": json.dumps(call[1])}
    return {"id": "call_" + rid, "type": "function", "function": function}


def chat_events(ask: Ask, text: str, call: Call | None, rid: str) -> Events:
    base = {
        "id": rid,
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": ask.model,
    }

    def chunk(delta: Json, finish: str | None = None) -> tuple[None, Json]:
        return None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces_of(text):
        yield chunk({"content": piece})
    if call:
        yield chunk({"tool_calls": [{"index": 0, **chat_call(call, rid)}]})
    yield chunk({}, "tool_calls" if call else "stop")
    yield None, {**base, "choices": [], "usage": chat_usage()}
    yield None, "[DONE]"


def chat_usage() -> Json:
    return {
        "prompt_tokens": USAGE_IN,
        "completion_tokens": USAGE_OUT,
        "total_tokens": USAGE_IN + USAGE_OUT,
    }


def chat_object(ask: Ask, text: str, call: Call | None, rid: str) -> Json:
    msg: Json = {"role": "assistant", "content": text or None}
    if call:
        msg["tool_calls"] = [chat_call(call, rid)]
    choice = {"index": 0, "message": msg, "finish_reason": "tool_calls" if call else "stop"}
    return {
        "id": rid,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": ask.model,
        "choices": [choice],
        "usage": chat_usage(),
    }


def responses_items(ask: Ask, text: str, call: Call | None, rid: str) -> list[Json]:
    items: list[Json] = []
    if text or not call:
        items.append(
            {
                "type": "message",
                "id": "msg_" + rid,
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            }
        )
    if call:
        spec = ask.tools.get(call[0], {})
        item: Json = {
            "id": "fc_" + rid,
            "call_id": "call_" + rid,
            "name": call[0],
            "status": "completed",
        }
        if spec.get("ns"):
            item["namespace"] = spec["ns"]
        if spec.get("custom"):
            raw = (
                call[1] if isinstance(call[1], str) else call[1].get("input") or json.dumps(call[1])
            )
            item.update(type="custom_tool_call", input=raw)
        else:
            item.update(type="function_call", arguments=json.dumps(call[1]))
        items.append(item)
    return items


def responses_object(
    ask: Ask, text: str, call: Call | None, rid: str, status: str = "completed"
) -> Json:
    done = status == "completed"
    return {
        "id": "resp_" + rid,
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "model": ask.model,
        "output": responses_items(ask, text, call, rid) if done else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "usage": {
            "input_tokens": USAGE_IN,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": USAGE_OUT,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": USAGE_IN + USAGE_OUT,
        }
        if done
        else None,
    }


def responses_events(ask: Ask, text: str, call: Call | None, rid: str) -> Events:
    seq = iter(range(10**9))

    def ev(kind: str, **fields: Any) -> tuple[str, Json]:
        return kind, {"type": kind, "sequence_number": next(seq), **fields}

    yield ev("response.created", response=responses_object(ask, text, call, rid, "in_progress"))
    for i, item in enumerate(responses_items(ask, text, call, rid)):
        opened = {**item, "status": "in_progress"}
        if item["type"] == "message":
            opened["content"] = []
        yield ev("response.output_item.added", output_index=i, item=opened)
        if item["type"] == "message":
            part = {"type": "output_text", "text": "", "annotations": []}
            where = {"item_id": item["id"], "output_index": i, "content_index": 0}
            yield ev("response.content_part.added", part=part, **where)
            for piece in pieces_of(text):
                yield ev("response.output_text.delta", delta=piece, **where)
            yield ev("response.output_text.done", text=text, **where)
            yield ev("response.content_part.done", part={**part, "text": text}, **where)
        elif item["type"] == "function_call":
            where, said = {"item_id": item["id"], "output_index": i}, item["arguments"]
            yield ev("response.function_call_arguments.delta", delta=said, **where)
            yield ev("response.function_call_arguments.done", arguments=said, **where)
        yield ev("response.output_item.done", output_index=i, item=item)
    yield ev("response.completed", response=responses_object(ask, text, call, rid))


def messages_object(ask: Ask, text: str, call: Call | None, rid: str) -> Json:
    content: list[Json] = []
    if text or not call:
        content.append({"type": "text", "text": text})
    if call:
        content.append(
            {"type": "tool_use", "id": "toolu_" + rid, "name": call[0], "input": call[1]}
        )
    return {
        "id": "msg_" + rid,
        "type": "message",
        "role": "assistant",
        "model": ask.model,
        "content": content,
        "stop_reason": "tool_use" if call else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": USAGE_IN,
            "output_tokens": USAGE_OUT,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def typed(kind: str, **fields: Any) -> tuple[str, Json]:
    return kind, {"type": kind, **fields}


def block_events(index: int, block: Json) -> Events:
    is_text = block["type"] == "text"
    opened = {"type": "text", "text": ""} if is_text else {**block, "input": {}}
    yield typed("content_block_start", index=index, content_block=opened)
    if is_text:
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces_of(block["text"])]
    else:
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    for delta in deltas:
        yield typed("content_block_delta", index=index, delta=delta)
    yield typed("content_block_stop", index=index)


def messages_events(ask: Ask, text: str, call: Call | None, rid: str) -> Events:
    whole = messages_object(ask, text, call, rid)
    usage = {**whole["usage"], "output_tokens": 1}
    begun = {**whole, "content": [], "stop_reason": None, "usage": usage}
    yield typed("message_start", message=begun)
    for i, block in enumerate(whole["content"]):
        yield from block_events(i, block)
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield typed("message_delta", delta=delta, usage={"output_tokens": USAGE_OUT})
    yield typed("message_stop")


def gemini_object(ask: Ask, text: str, call: Call | None, rid: str, *, last: bool = True) -> Json:
    parts: list[Json] = []
    if text or not call:
        parts.append({"text": text})
    if call:
        parts.append(
            {
                "functionCall": {"name": call[0], "args": call[1], "id": "call_" + rid},
                "thoughtSignature": "c2tpcA==",
            }
        )
    cand: Json = {"index": 0, "content": {"role": "model", "parts": parts}}
    if last:
        cand["finishReason"] = "STOP"
    return {
        "candidates": [cand],
        "modelVersion": ask.model,
        "responseId": rid,
        "usageMetadata": {
            "promptTokenCount": USAGE_IN,
            "candidatesTokenCount": USAGE_OUT,
            "totalTokenCount": USAGE_IN + USAGE_OUT,
        },
    }


def gemini_events(ask: Ask, text: str, call: Call | None, rid: str) -> Events:
    pieces = pieces_of(text) or [""]
    for piece in pieces[:-1]:
        yield None, gemini_object(ask, piece, None, rid, last=False)
    yield None, gemini_object(ask, pieces[-1], call, rid)


WIRES: dict[str, tuple[Callable[..., Json], Callable[..., Events]]] = {
    "chat": (chat_object, chat_events),
    "responses": (responses_object, responses_events),
    "messages": (messages_object, messages_events),
    "gemini": (gemini_object, gemini_events),
}


def error_body(wire: str, status: int, message: str) -> Json:
    if wire == "messages":
        kind = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}.get(
            status, "invalid_request_error" if status < 500 else "api_error"
        )
        return {"type": "error", "error": {"type": kind, "message": message}}
    if wire == "gemini":
        name = {401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED"}.get(status, "INTERNAL")
        return {"error": {"code": status, "message": message, "status": name}}
    return {"error": {"message": message, "type": "fake_error", "param": None, "code": str(status)}}


class Wire(BaseHTTPRequestHandler):
    server: "Server"

    protocol_version = "HTTP/1.1"
    server_version = "fake-model"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name there)
        """Log nothing: stderr belongs to the program that runs this server."""

    # -- plumbing --
    def body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            data = b""
            while True:
                size = int(self.rfile.readline().split(b";")[0].strip() or b"0", 16)
                if size == 0:
                    while self.rfile.readline().strip():
                        pass
                    return data
                data += self.rfile.read(size)
                self.rfile.readline()
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def reply(self, obj: Json, status: int = 200, headers: Json | None = None) -> None:
        data = json.dumps(obj).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def sse(self, events: Events, drip: float, *, hang: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if hang:
            self.wfile.flush()
            self.server.stop.wait(600)
            return
        for name, obj in events:
            if drip:
                self.server.stop.wait(drip)
            if name:
                self.wfile.write(f"event: {name}\n".encode())
            data = obj if isinstance(obj, str) else json.dumps(obj)
            self.wfile.write(f"data: {data}\n\n".encode())
            self.wfile.flush()

    def note(self, **fields: Any) -> None:
        """Take notice of a request; *fields* has the `body` of one to the model."""

    # -- verbs --
    def do_HEAD(self) -> None:
        self.note()
        self.reply({})

    def do_GET(self) -> None:
        self.note()
        path = self.path.split("?")[0].rstrip("/")
        model = self.server.opt.model
        if path.endswith("/models"):
            listed = {"id": model, "display_name": model, "created": 0, "owned_by": "fake"}
            listed |= {"object": "model", "type": "model"}
            self.reply({"object": "list", "data": [listed], "models": [], "has_more": False})
        elif path in ("", "/health"):
            self.reply({"ok": True})
        else:
            self.reply(error_body("", 404, "no such path"), 404)

    def do_POST(self) -> None:
        raw = self.body()
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {}
        path = self.path.split("?")[0].rstrip("/")
        if path.endswith("/count_tokens"):
            self.note()
            self.reply({"input_tokens": max(1, len(raw) // 4)})
        elif path.endswith(":countTokens"):
            self.note()
            self.reply({"totalTokens": max(1, len(raw) // 4)})
        elif (ask := read_ask(path, body, self.server.opt.model)) is None:
            self.note()
            self.reply(error_body("", 404, "no such path"), 404)
        else:
            self.answer(ask)

    def answer(self, ask: Ask) -> None:
        opt = self.server.opt
        turn, text, call = resolve(ask, opt.turns, None if opt.aside_none else opt.aside)
        self.note(body=ask.body)
        if turn.get("delay"):
            self.server.stop.wait(float(turn["delay"]))
        if "status" in turn:
            told = error_body(ask.wire, turn["status"], turn.get("message", "scripted error"))
            told = turn.get("body", told)
            self.reply(told, turn["status"], turn.get("headers"))
            return
        rid = f"{int(time.time() * 1000):x}{threading.get_ident() & 0xFFFF:x}"
        whole, events = WIRES[ask.wire]
        hang = bool(turn.get("hang"))
        if ask.stream:
            self.sse(events(ask, text, call, rid), float(turn.get("drip", 0)), hang=hang)
        else:
            if hang:
                self.server.stop.wait(600)
            self.reply(whole(ask, text, call, rid))


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, opt: argparse.Namespace) -> None:
        super().__init__(("127.0.0.1", opt.port), Wire)
        self.opt = opt
        self.stop = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], (BrokenPipeError, ConnectionResetError)):
            super().handle_error(request, client_address)
