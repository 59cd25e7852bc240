"""The files that an agent leaves for the engine in the step's folder.

prompt.md, failure.json, submitted.json and the trace, which become nodes of the step, with keys
masked. Without a step (an agent that is run by hand) nothing is written.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from uwf_git.agents.files import BadFileBelow, read_below, read_left_file
from uwf_git.agents.reply import BadJson, parse_strict_json
from uwf_git.agents.request import DEFAULT_MAX_OUTPUT_BYTES
from uwf_git.engine.prompt import DEFAULT_BUDGET
from uwf_git.engine.prompt import build_prompt as assemble_prompt
from uwf_git.engine.turn_context import AgentContext

PROMPT = "prompt.md"
FAILURE = "failure.json"
SUBMITTED = "submitted.json"

# Events are for people, who do not need whole files in them.
_LONGEST_TEXT = 4_000
_DEEPEST = 8
_MOST_ITEMS = 200

_MOST_REPORTED = 1024 * 1024

Note = Callable[[Mapping[str, Any]], None]


def write_prompt(step_dir: str | None, prompt: str) -> None:
    """Write the agent's prompt."""
    _write(step_dir, PROMPT, prompt)


def extend_prompt(step_dir: str | None, prompt: str, told: str) -> None:
    """Replace the written *prompt* by *told*, to which an adapter has added words."""
    kept = prompt.encode(errors="replace").decode()
    if step_dir is None or told == kept or not told.startswith(kept):
        return
    try:
        with open(os.path.join(step_dir, PROMPT), encoding="utf-8", newline="") as file:
            is_kept = file.read() == kept
    except OSError:
        return
    # A correction has another prompt; the step's is the first one.
    if is_kept:
        write_prompt(step_dir, told)


def write_failure(step_dir: str | None, failure: Mapping[str, Any]) -> None:
    """Write why there is no reply (``kind``), and what it cost (``usage``).

    For a rate limit also when it ends, if known (``resetAt``, in milliseconds since 1970).
    """
    # On a full disk, what is said on stderr has to do.
    with suppress(OSError):
        _write(step_dir, FAILURE, json.dumps(failure, default=str) + "\n")


def read_submitted(step_dir: str | None) -> Mapping[str, Any] | None:
    """Return what the agent submitted by the tool ``submit_result``, or None."""
    if step_dir is None:
        return None
    try:
        left = read_left_file(
            os.path.join(step_dir, SUBMITTED), most_bytes=DEFAULT_MAX_OUTPUT_BYTES
        )
        value = json.loads(left.content)
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and "meta" in value else None


def read_reported(
    step_dir: str | None, workdir: str | None, path: str | None
) -> tuple[Any, str] | None:
    """Return what the agent left in *path*, its role's output file, with "" or why it is no JSON.

    None if there is no such file, and without a step: the engine removes that of an earlier try.
    """
    if step_dir is None or workdir is None or path is None:
        return None
    try:
        content = read_below(workdir, path, most_bytes=_MOST_REPORTED)
        if content is None:
            return None
        return parse_strict_json(content.decode("utf-8-sig").strip()), ""
    except BadFileBelow as error:
        return None, error.problem
    except UnicodeDecodeError:
        return None, "is not UTF-8"
    except BadJson as error:
        return None, f"is {error.message}"


@contextmanager
def open_trace(path: str | None) -> Iterator[Note]:
    """Yield a function that adds an event to the trace: a line of JSON with its time.

    On a full disk the event is left out: no answer is lost because of it.
    """
    if not path:
        yield lambda _event: None
        return
    # Unbuffered, since it is read while the step runs.
    with open(path, "ab", buffering=0) as file:

        def note(event: Mapping[str, Any]) -> None:
            line = {"time": time.time_ns() // 1_000_000, **_shorten(event, depth=0)}
            with suppress(OSError):
                file.write(json.dumps(line, default=str).encode() + b"\n")

        yield note


def _write(step_dir: str | None, name: str, text: str) -> None:
    if step_dir is None:
        return
    with open(os.path.join(step_dir, name), "w", encoding="utf-8", errors="replace") as file:
        file.write(text)


def _shorten(value: Any, *, depth: int) -> Any:
    """Return *value* with long texts and deep levels cut."""
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]}[… {len(value) - _LONGEST_TEXT:,} characters left out …]"
    if isinstance(value, Mapping | list | tuple) and depth >= _DEEPEST:
        return "[…]"
    if isinstance(value, Mapping):
        items = list(value.items())[:_MOST_ITEMS]
        return {str(name): _shorten(each, depth=depth + 1) for name, each in items}
    if isinstance(value, list | tuple):
        return [_shorten(each, depth=depth + 1) for each in value[:_MOST_ITEMS]]
    return value


def build_prompt(context: AgentContext, *, budget: int = DEFAULT_BUDGET) -> str:
    """Build the prompt of a turn, and record it as the prompt of the step.

    It has the role, the task, the thread so far, and how to answer. *budget* limits task, thread
    and state, in characters; the role's own words and the answer format are never cut.
    """
    prompt = assemble_prompt(context, budget=budget)
    record_prompt(prompt)
    return prompt


def record_prompt(prompt: str) -> None:
    """Record *prompt* as the prompt of the step, for an agent that assembles its own."""
    write_prompt(os.environ.get("UWF_STEP_DIR") or None, prompt)


def trace(event: Mapping[str, Any]) -> None:
    """Add *event* to the trace of the step: an object with a ``type``, and what else there is.

    The ``usage`` of one of the type ``turn`` is shown by live views while the agent is at work.
    """
    with open_trace(os.environ.get("UWF_TRACE")) as note:
        note(event)
