"""Run chosen tests once and again in forks of one pytest, which has collected them all.

A plugin of the pytest that ``run.py`` starts. It reads a line of JSON for each change and answers
with a line of JSON; the test of a change costs a fork, not a start.
"""

import gc
import json
import os
import resource
import select
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import _lru_cache_wrapper
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from mutants.watching import Report

ASKS, ANSWERS = "MUTANTS_ASKS", "MUTANTS_ANSWERS"
"""The variables that hold the descriptors of the two pipes."""

_CODE_OF_A_FUNCTION = 0x3  # CO_OPTIMIZED | CO_NEWLOCALS: neither a module nor a class


class Ask(TypedDict):
    """Which module was changed, and what to run."""

    path: str
    before: str
    tests: list[str]
    every: bool
    cpu_s: int
    wall_s: float


class Answer(TypedDict):
    """What failed, by test; whether it took too long; why a fork cannot tell."""

    failed: list[str]
    is_slow: bool
    instead: str


class Unforkable(Exception):
    """The change is not one of functions that this process holds."""


def pytest_runtestloop(session: Any) -> bool:
    """Answer until there is nothing more to try."""
    items = {item.nodeid: item for item in session.items}
    answers = os.fdopen(int(os.environ[ANSWERS]), "w", buffering=1)
    with os.fdopen(int(os.environ[ASKS])) as asks:
        answers.write("collected\n")
        for line in asks:
            ask: Ask = json.loads(line)
            answers.write(json.dumps(try_in_a_fork(items, ask)) + "\n")
    return True


def try_in_a_fork(items: dict[str, Any], ask: Ask) -> Answer:
    """Change the module in a fork, and run the tests there, *items* by their names."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (ask["cpu_s"], ask["cpu_s"] + 5))
            os.write(writer, json.dumps(_try(items, ask)).encode() + b"\n")
        finally:
            os._exit(0)
    os.close(writer)
    return _wait(child, reader, ask["wall_s"])


def _wait(child: int, reader: int, seconds: float) -> Answer:
    """Wait for the child's line, and end the child and its group whatever becomes of it.

    The end of the pipe does not tell: a program that a test left behind may hold it.
    """
    until, text = time.monotonic() + seconds, b""
    while not text.endswith(b"\n"):
        if not select.select([reader], [], [], max(0.0, until - time.monotonic()))[0]:
            break
        part = os.read(reader, 1 << 16)
        if not part:
            break
        text += part
    os.close(reader)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    _pid, status = os.waitpid(child, 0)
    if text.endswith(b"\n"):
        answer: Answer = json.loads(text)
        return answer
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    is_slow = ended_by in {signal.SIGXCPU, signal.SIGKILL}
    return Answer(failed=[], is_slow=is_slow, instead="" if is_slow else "it ended")


def _try(items: dict[str, Any], ask: Ask) -> Answer:
    try:
        change(Path(ask["path"]), ask["before"])
    except Unforkable as error:
        return Answer(failed=[], is_slow=False, instead=str(error))
    failed: dict[str, None] = {}

    class Listener:
        def pytest_runtest_logreport(self, report: "Report") -> None:
            if report.failed:
                failed[report.nodeid] = None

    chosen = [items[name] for name in ask["tests"]]
    chosen[0].config.pluginmanager.register(Listener())
    for item, following in zip_longest(chosen, chosen[1:]):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if failed and not ask["every"]:
            break
    return Answer(failed=list(failed), is_slow=False, instead="")


def change(path: Path, before: str) -> None:
    """Give each function that this process has of a module the code that its file has now."""
    name = str(path)
    now = compile(path.read_text(), name, "exec")
    differences = list(_differences(compile(before, name, "exec"), now))
    codes = {_key(old): new for old, new in differences}
    gc.unfreeze()
    live = gc.get_objects()
    gc.freeze()
    functions = [each for each in live if type(each) is FunctionType]
    held = [each for each in functions if each.__code__.co_filename == name]
    if held and not codes.keys() <= {_key(each.__code__) for each in held}:
        raise Unforkable("no function holds the code")
    # What a function has made stays as it was made, as the reader of a setting.
    codes |= {_key(a): b for old, new in differences for a, b in _made_by(old, new)}
    try:
        for each in held:
            each.__code__ = codes.get(_key(each.__code__), each.__code__)
    except ValueError as error:  # other variables of the functions around it
        raise Unforkable(str(error)) from None
    # What was computed before the fork was computed by the code as it was.
    for each in live:
        if type(each) is _lru_cache_wrapper:
            each.cache_clear()


def _differences(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the outermost functions whose code differs, as it was and as it is."""
    if old == new:
        return
    if old.co_flags & _CODE_OF_A_FUNCTION == _CODE_OF_A_FUNCTION:
        yield old, new
        return
    pairs = list(zip_longest(_inner(old), _inner(new)))
    if any(a is None or b is None or a.co_name != b.co_name for a, b in pairs):
        raise Unforkable("functions came or went")
    if _outside(old) != _outside(new):
        raise Unforkable("it runs when the module is imported")
    for a, b in pairs:
        yield from _differences(a, b)


def _made_by(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    for a, b in zip(_inner(old), _inner(new), strict=False):
        if a.co_name == b.co_name:
            yield a, b
            yield from _made_by(a, b)


def _inner(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _outside(code: CodeType) -> tuple[object, ...]:
    # From Python 3.13 on the body of a class has the number of its first line.
    own = [each for each in code.co_consts if not isinstance(each, CodeType)]
    constants = [repr(each) for each in own if each != code.co_firstlineno]
    return code.co_code, code.co_names, constants


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno
