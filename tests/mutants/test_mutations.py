import os
import signal
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from mutants.forking import Answer, Ask, Unforkable, change, try_in_a_fork
from mutants.mutations import apply, lines_of, list_mutants
from mutants.run import ROOMS, list_modules
from mutants.watched import Watched

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "uwf_git"


def changes_of(source: str) -> list[str]:
    """Return what each mutant makes of *source*, without the parentheses that keep it Python."""
    whole = source.encode()
    made = (apply(mutant, whole).decode() for mutant in list_mutants("a.py", whole))
    return [" ".join(each.replace("(", " ").replace(")", " ").split()) for each in made]


def test_each_place_is_changed_once() -> None:
    for source, changes in [
        ("a < b", ["a <= b"]),
        ("a <= b is not c", ["a < b is not c", "a <= b is c"]),
        ("a not in b", ["a in b"]),
        ("a or b", ["a and b", "b", "a"]),
        ("not a", ["a"]),
        ("x if a else y", ["x if not a else y"]),
        ("[x for x in y if a]", ["[x for x in y if True]"]),
        ("a + b", ["a - b"]),
        ("a = 7", ["a = 7 + 1", "a = 7 * 50"]),
        ("a = True", ["a = False"]),
        ("a = 'é'; b = 1", ["a = 'é~' ; b = 1".replace(" ;", ";"), "a = 'é'; b = 1 + 1"]),
        ("check()", ["pass"]),
        ("a.b = c", ["pass"]),
        ("def f(): return a", ["def f : return None"]),
        ("def f(a: 1 = 2): pass", ["def f a: 1 = 2 + 1 : pass", "def f a: 1 = 2 * 50 : pass"]),
    ]:
        assert changes_of(source) == changes


@pytest.mark.parametrize(
    "source",
    [
        '"""A text."""',
        "a = 'two words'",
        "debug('7KYP', 'began', number=1)",
        "raise Bad('one', hint='two')",
        "hint = 'one'",
        "a.decode('ascii'), cast('B[c]', d)",
        "f'{a < b}'",
        "a: Literal['x']",
        "def f() -> None: return None",
    ],
)
def test_wordings_types_and_logs_stay(source: str) -> None:
    assert [each for each in changes_of(source) if each != "pass"] == []


def test_name_outlasts_edits_elsewhere() -> None:
    (alone,) = list_mutants("a.py", b"def f():\n    check()\n")
    _other, moved = list_mutants("a.py", b"x()\n\ndef f():\n  check()\n")

    assert alone.name() == moved.name()
    assert (alone.scope, alone.line, moved.line) == ("f", 2, 4)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("a = f(\n    0,\n)", [1, 2, 3]),
        ("if (\n    a < b\n):\n    c = d", [1, 2, 3]),
        ("if a:\n    b = 0\nelse:\n    c = d", [2]),
        ("try:\n    a = b\nexcept (c, d):\n    pass", [3]),
        ("def f(\n    a=0,\n):\n    pass", [1, 2, 3]),
    ],
)
def test_lines_of_a_mutant_are_those_that_run_whenever_it_does(
    source: str, lines: list[int]
) -> None:
    whole = source.encode()

    assert list(lines_of(list_mutants("a.py", whole)[-1], whole)) == lines


def test_quick_tests_come_first_and_slow_ones_not_at_all() -> None:
    watched = Watched({"a": 14.0, "b": 0.1, "c": 14.0, "d": 14.0}, failed={"e"}, ran={})

    assert watched.order({"a", "b", "c", "d", "e"}) == ["b", "a", "c"]


def test_every_module_of_the_package_is_in_a_room() -> None:
    known = {module for room in ROOMS for module in list_modules(ROOT, room)}
    assert all(module.is_file() for module in known)

    left = {str(each.relative_to(PACKAGE)) for each in PACKAGE.rglob("*.py")}
    left -= {str(each.relative_to(PACKAGE)) for each in known}
    assert {each for each in left if not each.endswith("__.py")} == {"errors.py"}


def test_the_tests_of_each_room_are_there() -> None:
    asked = [(room, pattern) for room, patterns in ROOMS.items() for pattern in patterns]
    assert [each for each in asked if not list((ROOT / "tests").glob(each[1]))] == []


BEFORE = """
from functools import lru_cache

LIMIT = 7

def deeper():
    return [each for each in range(LIMIT) if each > 1]

@lru_cache
def kept():
    return deeper()

class Box:
    @property
    def size(self):
        def inner():
            return 1
        return inner()

def adder(step):
    def add(number):
        return number + step
    return add

add_two = adder(2)
"""


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    path = tmp_path / "changed_in_a_fork.py"
    path.write_text(BEFORE)
    spec = spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_live_functions_get_the_code_of_the_changed_file(module: ModuleType) -> None:
    held, box = module.deeper, module.Box()
    assert module.kept() == [2, 3, 4, 5, 6]
    path = Path(str(module.__file__))
    changed = BEFORE.replace("each > 1", "\n each > 4").replace("return 1", "return 2")
    path.write_text(changed.replace("+ step", "- step"))

    change(path, BEFORE)

    assert (held(), module.kept(), box.size, module.add_two(5)) == ([5, 6], [5, 6], 2, 3)


@pytest.mark.parametrize(
    ("old", "new"), [("LIMIT = 7", "LIMIT = 8"), ("def size(self)", "def size(self, *, deep=1)")]
)
def test_what_runs_at_an_import_needs_a_new_process(module: ModuleType, old: str, new: str) -> None:
    path = Path(str(module.__file__))
    path.write_text(BEFORE.replace(old, new))

    with pytest.raises(Unforkable):
        change(path, BEFORE)


def leave_a_program() -> None:
    if os.fork() == 0:
        signal.pause()
        os._exit(0)


@pytest.mark.parametrize(
    ("run", "answer"),
    [
        (leave_a_program, Answer(failed=[], is_slow=False, instead="")),
        (lambda: os._exit(0), Answer(failed=[], is_slow=False, instead="it ended")),
        (lambda: 1 / 0, Answer(failed=[], is_slow=False, instead="it ended")),
        (signal.pause, Answer(failed=[], is_slow=True, instead="")),
    ],
    ids=["program left", "ended", "broken", "slow"],
)
def test_only_a_whole_answer_of_a_fork_counts(
    module: ModuleType, run: Callable[[], object], answer: Answer
) -> None:
    hook = SimpleNamespace(pytest_runtest_protocol=lambda **_said: run())
    manager = SimpleNamespace(register=lambda _listener: None)
    item = SimpleNamespace(config=SimpleNamespace(hook=hook, pluginmanager=manager))
    path, wall_s = str(module.__file__), 1 if answer["is_slow"] else 60
    ask = Ask(path=path, before=BEFORE, tests=["a"], every=False, cpu_s=60, wall_s=wall_s)

    assert try_in_a_fork({"a": item}, ask) == answer
