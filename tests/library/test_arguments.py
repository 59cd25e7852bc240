"""Wrong types and values: every public method of the library raises our errors, and later ones do.

The methods are found by introspection, and each of their parameters is given each odd value.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import is_dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from commands.world import DEMO
from library.conftest import PLAYERS

import uwf_git
from uwf_git import BadUsage, PlayerResult, TaskFilter, TaskHandle, TaskRuntime, UwfError
from uwf_git.library.arguments import WrongArgument

DEEP: list[Any] = []
for _ in range(3000):
    DEEP = [DEEP]

ODD: dict[str, Any] = {
    "object": object(),
    "none": None,
    "zero": 0,
    "minus one": -1,
    "large": 10**400,
    "true": True,
    "fraction": 1.5,
    "nan": float("nan"),
    "infinite": float("inf"),
    "empty": "",
    "blank": " ",
    "surrogate": "\ud800",
    "nul": "a\0b",
    "lines": "a\nb",
    "long": "x" * 100_000,
    "role": "writer=",
    "dashes": "--all",
    "bytes": b"\xff",
    "path": Path("a\0b"),
    "missing path": Path("nowhere") / "no.yaml",
    "folder": Path("/"),
    "list": [],
    "numbers": [1],
    "texts": ["\ud800"],
    "deep": DEEP,
    "dict": {},
    "numbered": {1: 2},
    "roles": {"writer": 5},
    "no role": {"nobody": "x"},
    "odd key": {"\ud800": "\0"},
    "no JSON": {"writer": object()},
    "no number": {"max_steps": float("nan"), "text": float("inf")},
    "bad limit": {"max_steps": -1},
    "deep dict": {"text": DEEP},
    "callable": lambda *_args, **_others: None,
    "class": TaskHandle,
}

GOOD: dict[str, Any] = {
    "workflow": DEMO,
    "prompt": "Do it.",
    "reason": "why",
    "step": "1",
    "tasks": [],
    "wish": "A letter",
    "flag": True,
    "meta": {"text": "x"},
    "patch": {"a": 1},
    "addition": "moderator:\n  - {from: writer, to: checker, when: 'true'}\n",
}

CLASSES = (TaskRuntime, TaskHandle)


def public(cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public methods of *cls*, and how it is made."""
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        if not name.startswith("_"):
            yield name, method


METHODS = {
    f"{cls.__name__}.{name}": (cls, name, list(inspect.signature(method).parameters)[1:])
    for cls in CLASSES
    for name, method in public(cls)
}
CASES = [(method, parameter) for method, (_, _, names) in METHODS.items() for parameter in names]


def test_every_class_with_methods_is_tried() -> None:
    exported = [getattr(uwf_git, name) for name in uwf_git.__all__]
    plain = [each for each in exported if isinstance(each, type) and not is_dataclass(each)]
    errors = {each for each in plain if issubclass(each, BaseException)}
    assert {each for each in plain if list(public(each))} - errors == set(CLASSES)


def attempt(call: Callable[[], Any]) -> BaseException | None:
    """Call it, and return what it raised."""
    try:
        result = call()
        if isinstance(result, Iterator):
            list(islice(result, 3))
    except Exception as error:  # noqa: BLE001 (which one it is, is what the tests ask)
        return error
    return None


def find_foreign(use: Callable[[Any], Any]) -> dict[str, BaseException]:
    """Return the errors that are none of ours, by the odd value that *use* was given."""
    raised = {odd: attempt(partial(use, value)) for odd, value in ODD.items()}
    return {odd: each for odd, each in raised.items() if each and not isinstance(each, UwfError)}


@pytest.mark.parametrize(("method", "parameter"), CASES)
def test_odd_argument_is_taken_or_refused(
    method: str, parameter: str, runtime: TaskRuntime
) -> None:
    cls, name, names = METHODS[method]
    runtime.put(DEMO)
    task = runtime.start("demo", "Do it.")
    wrong = {}
    for odd, value in ODD.items():
        if parameter == "follow" and value is True:
            # That is a right value: it waits for ever.
            continue
        given = {each: GOOD[each] for each in names if each in GOOD}
        given |= {"task_id": task.task_id} if "task_id" in names else {}
        given[parameter] = value
        error = attempt(partial(getattr(task if cls is TaskHandle else runtime, name), **given))
        if error is None:
            # It may have changed the task.
            task = runtime.start("demo", "Do it.")
        elif not isinstance(error, UwfError) or (
            # A callback that is a class is called.
            isinstance(error, WrongArgument)
            and not re.search(rf"\({parameter}\w*=…\): ", error.message)
            and odd != "class"
        ):
            wrong[odd] = error
    assert wrong == {}


@pytest.mark.parametrize("parameter", list(inspect.signature(TaskRuntime).parameters))
def test_odd_setting_of_a_runtime_is_taken_or_refused(
    parameter: str, store: str, tmp_path: Path
) -> None:
    def use(value: Any) -> None:
        given = {"repo": store, "cwd": tmp_path, "players": PLAYERS, parameter: value}
        task = TaskRuntime(**given).start(DEMO, "Do it.")
        task.step()
        task.query()

    assert find_foreign(use) == {}


@pytest.mark.parametrize("field", list(TaskFilter.__dataclass_fields__))
def test_odd_field_of_a_filter_is_taken_or_refused(field: str, runtime: TaskRuntime) -> None:
    runtime.start(DEMO, "Do it.")

    assert find_foreign(lambda value: runtime.list(TaskFilter(**{field: value}))) == {}


@pytest.mark.parametrize("field", ["meta", "content", "usage", "state"])
def test_odd_result_of_a_player_is_a_failed_attempt(field: str, store: str) -> None:
    def step(value: Any) -> None:
        result = replace(PlayerResult({"text": "x"}), **{field: value})
        TaskRuntime(store, players={"writer": lambda _context: result}).start(DEMO, "Do it.").step()

    assert find_foreign(step) == {}


def test_call_that_the_signature_does_not_take_is_ours_and_a_type_error(
    runtime: TaskRuntime,
) -> None:
    start: Any = runtime.start
    for call in (partial(start), partial(start, DEMO, "x", "y"), partial(start, nothing=1)):
        error = attempt(call)
        assert isinstance(error, BadUsage)
        assert isinstance(error, TypeError)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"prompt": 5}, "TaskRuntime.start(prompt=…): it is of type int, not str"),
        ({"agents": {"a": 5}}, "its value of 'a' is wrong: it is of type int, not str"),
        ({"workflow": {5: "a"}}, "one of its names is wrong: it is of type int, not str"),
        ({"workdir": b"/"}, "it is of type bytes, not str or PathLike or None"),
        ({"workdir": "a\0b"}, "no path holds a NUL"),
    ],
)
def test_message_names_the_argument_and_both_types(
    words: dict[str, Any], told: str, runtime: TaskRuntime
) -> None:
    given: dict[str, Any] = {"workflow": DEMO, "prompt": "x", **words}

    with pytest.raises(WrongArgument) as caught:
        runtime.start(**given)

    assert told in caught.value.message
    assert caught.value.hint == "`help(TaskRuntime.start)` describes its arguments"
    assert vars(copy(caught.value)) == vars(caught.value)


def test_clock_that_tells_no_time_is_named(store: str) -> None:
    with pytest.raises(WrongArgument) as caught:
        TaskRuntime(store, now_ms=lambda: -1).start(DEMO, "Do it.")

    assert caught.value.message.startswith("TaskRuntime(now_ms=…): it returns whole milliseconds")
    assert caught.value.hint == "`help(TaskRuntime)` describes its arguments"


def test_annotations_are_there_to_be_checked() -> None:
    for cls in CLASSES:
        for name, method in public(cls):
            for parameter in list(inspect.signature(method).parameters.values())[1:]:
                assert parameter.annotation is not inspect.Parameter.empty, (name, parameter)
                assert not isinstance(parameter.annotation, str), (name, parameter)
