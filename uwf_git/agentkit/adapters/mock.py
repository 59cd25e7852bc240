"""uwf-mock: a script plays a role.

The same script, role, visit and attempt give the same bytes, log and end. A script that parsed can
be played to its end; an unknown key is an error. The store is opened only
if the script depends on the number of the visit.
"""

import base64
import binascii
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from uwf_git.agentkit.running import make_main
from uwf_git.agentkit.turn import load_context, parse_arguments
from uwf_git.engine.turn_context import AgentContext
from uwf_git.errors import BadUsage, Refused
from uwf_git.model.yaml_reader import BadYaml, YamlDocument, parse_yaml

ScriptPath = tuple[str | int, ...]

_RESULT = ("meta", "content", "usage", "state", "session")
_FORMS = ("json", "front-matter", "bare")

_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def bad_script(problem: str, *, line: int | None = None) -> Refused:
    where = "" if line is None else f", line {line}"
    return Refused(
        f"mock script{where}: {problem}", code="bad-script", hint="see uwf-mock --help", line=line
    )


Attempt = dict[str, Any]
"""What to do in one attempt: its fields, checked, as they stand in the script."""

MockScript = dict[str, tuple[tuple[Attempt, ...], ...]]
"""For each role its turns, and for each turn its attempts."""


def get_turns(script: MockScript, role: str) -> tuple[tuple[Attempt, ...], ...]:
    if role not in script:
        raise bad_script(f"no role {role}, only {', '.join(script)}")
    return script[role]


def get_attempt(script: MockScript, role: str, *, visit: int, attempt: int) -> Attempt:
    """Return the n-th attempt at the n-th turn of *role*; the last ones repeat."""
    turns = get_turns(script, role)
    attempts = turns[min(visit, len(turns)) - 1]
    return attempts[min(attempt, len(attempts)) - 1]


def parse_script(source: bytes) -> MockScript:
    try:
        document = parse_yaml(source)
    except BadYaml as error:
        raise bad_script(error.problem, line=error.line) from error
    if not isinstance(document.value, dict) or not document.value:
        raise bad_script("it is an object: for each role the list of its turns")
    script: MockScript = {}
    for role, turns in document.value.items():
        if not isinstance(turns, list) or not turns:
            problem = f"the turns of {role} are not a list"
            raise bad_script(problem, line=document.line((role,)))
        script[role] = tuple(_read_turn(document, turn, (role, n)) for n, turn in enumerate(turns))
    return script


def _read_turn(document: YamlDocument, turn: Any, path: ScriptPath) -> tuple[Attempt, ...]:
    if turn == []:
        raise bad_script("a turn without an attempt", line=document.line(path))
    places = {path: turn}
    if isinstance(turn, list):
        places = {(*path, n): each for n, each in enumerate(turn)}
    for place, fields in places.items():
        key, problem = _find_problem(fields)
        if problem:
            raise bad_script(problem, line=document.line((*place, *key)))
    return tuple(places.values())


def _find_problem(fields: Any) -> tuple[tuple[str, ...], str]:
    """Return what is wrong with an attempt, after the key at which it is; "" if nothing is."""
    if not isinstance(fields, dict):
        return (), "an attempt is an object"
    for key, value in fields.items():
        if key not in _KEYS:
            return (key,), f"the key {key} is not one of {', '.join(_KEYS)}"
        kind, expected = _KEYS[key]
        if not (isinstance(value, kind) if isinstance(kind, type) else kind(value)):
            return (key,), f"{key} is not {expected}"
    return (), _find_conflict(fields)


def _find_conflict(fields: dict[str, Any]) -> str:
    """Return which keys of an attempt contradict each other; "" if none do."""
    results = [key for key in _RESULT if key in fields]
    raws = [key for key in ("stdout", "stdoutBase64") if key in fields]
    ends = [key for key in ("exit", "signal", "hang") if fields.get(key)]
    form = fields.get("form", "json")
    if len(raws) > 1 or (raws and (results or "form" in fields)):
        return f"{raws[0]} is the whole output; remove the other outputs"
    if len(ends) > 1:
        return f"{ends[0]} and {ends[1]} are two ends; remove one"
    if form == "json":
        return ""
    carried = ("meta", "content") if form == "front-matter" else ("meta",)
    if not isinstance(fields.get("meta"), dict):
        return f"the form {form} needs a meta with fields"
    lost = [key for key in results if key not in carried]
    return f"the form {form} cannot carry {lost[0]}" if lost else ""


def render_output(fields: Attempt) -> bytes:
    if "stdout" in fields:
        return str(fields["stdout"]).encode()
    if "stdoutBase64" in fields:
        return base64.b64decode(fields["stdoutBase64"])
    result = {key: fields[key] for key in _RESULT if key in fields}
    form = fields.get("form", "json")
    if form == "front-matter":
        lines = [f"{_yaml(key)}: {_yaml(value)}\n" for key, value in fields["meta"].items()]
        return f"---\n{''.join(lines)}---\n{fields.get('content', '')}".encode()
    if form == "bare":
        return _json(fields["meta"]).encode() + b"\n"
    return _json(result).encode() + b"\n" if result else b""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _yaml(value: Any) -> str:
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", _json(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_natural(value: Any) -> bool:
    return _is_number(value) and isinstance(value, int)


def _is_base64(value: Any) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        return False
    return True


def find_signal(value: Any) -> int | None:
    """Return the number of a signal named as for kill(1): KILL, SIGKILL or 9."""
    for each in signal.Signals:
        if value in (each.value, each.name, each.name.removeprefix("SIG")):
            return each.value
    return None


_KEYS: dict[str, tuple[type | Callable[[Any], bool], str]] = {
    "meta": (object, "anything"),
    "content": (str, "a text"),
    "usage": (dict, "an object"),
    "state": (dict, "an object"),
    "session": (str, "a text"),
    "form": (lambda value: value in _FORMS, f"one of {', '.join(_FORMS)}"),
    "stdout": (str, "a text"),
    "stdoutBase64": (_is_base64, "base64"),
    "stderr": (str, "a text"),
    "delay": (_is_number, "a number of seconds"),
    "flood": (_is_natural, "a number of bytes"),
    "exit": (lambda value: _is_natural(value) and value in range(256), "an exit status"),
    "signal": (lambda value: find_signal(value) is not None, "a signal, such as TERM or 9"),
    "hang": (bool, "true or false"),
}
"""The keys of an attempt, each with the type of its value or a check, and that in words."""


_HELP = """\
Usage: uwf-mock SCRIPT THREAD-ID

Play roles from a script, to try a workflow out or to test one: YAML or JSON, for each
role the list of its turns. Turn n is the role's n-th visit; the last one repeats.
The engine appends the thread id; `-t THREAD-ID -r ROLE` is understood as well.

    planner:
      - meta: {plan: [fix it]}
        content: Here is what to do.
    reviewer:
      - meta: {approved: false}
      - - {exit: 1, stderr: no model answered}    # a turn of several attempts
        - meta: {approved: true}

Example: uwf thread start solve-issue -p try --agent "uwf-mock $PWD/script.yaml"

An attempt may hold, in the order in which it happens:
  stderr        a text for the log
  delay         seconds to wait
  flood         so many bytes to print on stdout
  meta, content, usage, state, session
                the result; form: json (default), front-matter or bare
  stdout, stdoutBase64
                what to print instead of a result
  exit, signal, hang
                how to end: a status, killed by a signal (TERM or 15), or never

EXIT STATUS: what the script says, by default 0; 1 the script is wrong, or does not
know the role; 2 usage.
"""

_FLOOD_CHUNK = b"x" * 65536


def find_attempt(
    argv: Sequence[str], environ: Mapping[str, str], *, load: Callable[[], AgentContext]
) -> Attempt:
    """Find the script's entry for this attempt; call *load* only if it is needed."""
    arguments = parse_arguments(argv)
    if len(arguments.own) != 1:
        raise BadUsage(
            f"uwf-mock takes one script, not {len(arguments.own)}",
            hint="uwf-mock SCRIPT THREAD-ID; see uwf-mock --help",
        )
    file = arguments.own[0]
    try:
        script = parse_script(Path(file).read_bytes())
    except OSError as error:
        raise bad_script(f"cannot read {file}: {error.strerror}") from error
    role = arguments.role or environ.get("UWF_ROLE") or load().current_role.name
    turns = get_turns(script, role)
    visit = 1 if len(turns) == 1 else load().visit
    is_single = all(len(turn) == 1 for turn in turns)
    number = 1 if is_single else _read_number(environ) or load().attempt
    return get_attempt(script, role, visit=visit, attempt=number)


def play_attempt(attempt: Attempt) -> int:
    """Do what *attempt* says; return the exit status, unless a signal ends the process."""
    sys.stderr.write(attempt.get("stderr", ""))
    sys.stderr.flush()
    time.sleep(attempt.get("delay", 0))
    stdout, flood_bytes = sys.stdout.buffer, attempt.get("flood", 0)
    for start in range(0, flood_bytes, len(_FLOOD_CHUNK)):
        stdout.write(_FLOOD_CHUNK[: flood_bytes - start])
    stdout.write(render_output(attempt))
    stdout.flush()
    number = find_signal(attempt.get("signal"))
    if number is not None:
        # Python handles SIGINT itself; the script wants the signal to kill the process.
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    while attempt.get("hang"):
        signal.pause()
    return int(attempt.get("exit", 0))


def _read_number(environ: Mapping[str, str]) -> int | None:
    text = environ.get("UWF_ATTEMPT")
    if not text:
        return None
    if not text.isdecimal() or not int(text):
        raise BadUsage(f"UWF_ATTEMPT is {text!r}, not a number from 1", hint="unset UWF_ATTEMPT")
    return int(text)


def _play(argv: list[str]) -> int:
    return play_attempt(find_attempt(argv, os.environ, load=lambda: load_context(os.environ, argv)))


main = make_main(_HELP, _play)
