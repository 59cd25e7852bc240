import pytest
from mutants.mutations import apply, list_mutants


def changes_of(source: str) -> list[str]:
    """Return what each mutant makes of *source*, without the parentheses that keep it Python."""
    whole = source.encode()
    made = (apply(mutant, whole).decode() for mutant in list_mutants("a.py", whole))
    return [" ".join(each.replace("(", " ").replace(")", " ").split()) for each in made]


@pytest.mark.parametrize(
    ("source", "changes"),
    [
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
        (
            "def f(): return a",
            [
                "def f : return None",
            ],
        ),
        ("def f(a: 1 = 2): pass", ["def f a: 1 = 2 + 1 : pass", "def f a: 1 = 2 * 50 : pass"]),
    ],
)
def test_each_place_is_changed_once(source: str, changes: list[str]) -> None:
    assert changes_of(source) == changes


@pytest.mark.parametrize(
    "source",
    [
        '"""A text."""',
        "a = 'two words'",
        "debug('7KYP', 'began', number=1)",
        "raise Bad('one', hint='two')",
        "hint = 'one'",
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
