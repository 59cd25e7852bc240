import pytest

from uwf_git.engine.expression import Piece, check_condition, split_template


@pytest.mark.parametrize(
    ("source", "pieces"),
    [
        ("", []),
        ("plain } text $ {", ["plain } text $ {"]),
        ("${state.a}", ["=state.a"]),
        ("a ${state.a} b ${1}", ["a ", "=state.a", " b ", "=1"]),
        ("${ {'a': {'b': 1}} }!", ["= {'a': {'b': 1}} ", "!"]),
        ("${state.a & '}'}", ["=state.a & '}'"]),
        ("a \\${b} ${c}", ["a ${b} ", "=c"]),
        ("\\${a}", ["${a}"]),
    ],
)
def test_a_table_of_templates(source: str, pieces: list[str]) -> None:
    expected = [Piece(each.removeprefix("="), each.startswith("=")) for each in pieces]
    assert list(split_template(source, check_condition)) == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a ${", "no } ends it"),
        ("${}", "it is empty"),
        ("${state.a === 1}", "JSONata"),
        ("${(" + "x}" * 500, "in "),
    ],
)
def test_what_is_no_template(source: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        split_template(source, check_condition)
