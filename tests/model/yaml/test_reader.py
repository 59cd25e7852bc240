import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.yaml_reader import BadYaml, CannotInclude, Includes, YamlDocument, parse_yaml

WRONG = Path(__file__).parent / "made_up" / "wrong_yaml.json"


@pytest.fixture(autouse=True, params=["CSafeLoader", "SafeLoader"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test with libyaml and without: either may be installed."""
    if request.param == "SafeLoader":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML was built without libyaml")


def refused(source: bytes | str) -> tuple[int | None, str]:
    with pytest.raises(BadYaml) as caught:
        parse_yaml(source)
    assert "\n" not in caught.value.message
    assert caught.value.exit_status == 1
    return caught.value.line, caught.value.problem


FILE = """\
# a comment
name: demo
roles:
  writer:
    prompt: |
      Write
      it.
  checker: {a: 1,
    b: 2}
list:
- one
-
  x: y
- - deep
"""


def test_values_are_plain_json() -> None:
    assert parse_yaml(FILE).value == {
        "name": "demo",
        "roles": {"writer": {"prompt": "Write\nit.\n"}, "checker": {"a": 1, "b": 2}},
        "list": ["one", {"x": "y"}, ["deep"]],
    }


def test_lines_are_counted_with_any_line_break() -> None:
    assert parse_yaml("a: 1\r\nb: 2\r\nc: 3").line(("c",)) == 3
    assert parse_yaml("a: 1\rb: 2\rc: 3").line(("c",)) == 3


def test_core_tags_are_understood() -> None:
    source = '[!!str 1, ! 2, !!int "3", !!float 4, !!bool true, !!null "", !!map {}, !!seq []]'
    assert parse_yaml(source).value == ["1", "2", 3, 4, True, None, {}, []]


def test_what_is_refused_is_told_with_its_line(golden: Callable[[str, str], None]) -> None:
    told: list[str] = []
    for about, sources in json.loads(WRONG.read_text()).items():
        told += [f"# {about}", ""]
        for source in sources:
            line, problem = refused(source)
            told += [f"> {json.dumps(source)}", f"{line}: {problem}", ""]
    golden("yaml.txt", "\n".join(told))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('a: {when: $count(b[c = "d"]) < 3}', "quote text that has"),
        ("a: Write: a text", "quote text that has"),
        ("a: %W", "quote text that starts with @, ` or %"),
    ],
)
def test_text_to_be_quoted_is_told(source: str, words: str) -> None:
    assert words in refused(source)[1]


def test_merge_key_is_an_ordinary_key() -> None:
    assert parse_yaml("a: &x {b: 1}\nc:\n  <<: *x").value["c"] == {"<<": {"b": 1}}


def test_alias_repeats_its_value_and_its_lines() -> None:
    document = parse_yaml("a: &x\n  b: 1\nc: *x\n")
    assert document.value == {"a": {"b": 1}, "c": {"b": 1}}
    assert (document.line(("c",)), document.line(("c", "b"))) == (3, 2)


def test_aliases_cannot_multiply() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    line, problem = refused("\n".join(levels))
    assert (line, problem) == (6, "more than 200,000 values, aliases and includes counted")


def test_aliases_cannot_nest_deeper_than_the_limit() -> None:
    levels = ["a0: &a0 [[[[[[[[[[x]]]]]]]]]]"]
    levels += [f"a{n}: &a{n} [[[[[[[[[[*a{n - 1}]]]]]]]]]]" for n in range(1, 30)]
    assert refused("\n".join(levels)) == (10, "nested more than 100 levels deep")


def test_values_are_counted_up_to_the_limit() -> None:
    # A list of 999 values counts 1,000, and so does every alias to it; the outer list counts 1.
    lists = f"[&a [{'x,' * 999}]{{}}]"
    assert parse_yaml(lists.format(", *a" * 198)).value
    assert refused(lists.format(", *a" * 199)) == (
        1,
        "more than 200,000 values, aliases and includes counted",
    )


def test_a_hundred_levels_are_read_and_one_more_is_not() -> None:
    assert parse_yaml("[" * 100 + "]" * 100).value
    assert refused("[" * 101 + "]" * 101) == (1, "nested more than 100 levels deep")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_ten_thousand_levels_are_refused(opening: str) -> None:
    assert refused(opening * 10_000) == (1, "nested more than 100 levels deep")


def test_fifty_megabytes_are_refused_unread() -> None:
    assert refused(b"a" * 50_000_000) == (None, "the file is larger than 1 MiB")


@pytest.mark.parametrize("escape", ['"\\ud800"', 'a: "x\\udfff"', '"\\ud83d\\ude00": x'])
def test_half_of_a_surrogate_pair_is_refused(escape: str) -> None:
    assert refused(escape)[0] == 1


@pytest.mark.parametrize(
    "source", ['"\\UFFFFFFFF"', '"\\U00110000"', f"%YAML {'1' * 5000}.1\n---\na"]
)
def test_number_beyond_all_characters_and_versions_is_refused(source: str) -> None:
    assert refused(source)


@given(st.one_of(st.binary(max_size=200), st.text(alphabet="a1 -:#[]{}&*!|>'\"%@`~\n\t?,<=")))
def test_any_input_is_read_or_refused(source: bytes | str) -> None:
    with suppress(BadYaml):
        json.dumps(parse_yaml(source).value, allow_nan=False)


def read_with(source: str, **files: str) -> YamlDocument:
    named = {name.replace("__", "/").replace("_", "."): text for name, text in files.items()}

    def read(path: str) -> bytes:
        if path not in named:
            raise CannotInclude("it is not there")
        return named[path].encode()

    return parse_yaml(source, includes=Includes(read, name="main.yaml"))


def told(source: str, **files: str) -> list[tuple[str | None, int | None, str]]:
    with pytest.raises(BadYaml) as caught:
        read_with(source, **files)
    return [(each.file, each.line, each.message) for each in caught.value.problems]


def test_an_include_stands_for_what_is_in_the_file() -> None:
    document = read_with(
        "a: !include x.md\nb: [!include p/y.yaml, !include 'z.json']\nc: !include x.md",
        x_md="two\nlines\n",
        p__y_yaml="k: !include q.yaml\nl: !include ../x.md",
        p__q_yaml="[1, no]",
        z_json='{"on": null}',
    )

    assert document.value == {
        "a": "two\nlines\n",
        "b": [{"k": [1, "no"], "l": "two\nlines\n"}, {"on": None}],
        "c": "two\nlines\n",
    }


@pytest.mark.parametrize("source", ["!include [a]", "a: !include {b: 1}"])
def test_an_include_takes_a_path_and_no_collection(source: str) -> None:
    assert told(source) == [(None, 1, "!include takes the path of one file")]


def test_a_key_cannot_be_included() -> None:
    (problem,) = told("a: 1\n!include x.md : 2", x_md="b")
    assert problem[:2] == (None, 2)
    assert "only a value can" in problem[2]


def test_everything_that_cannot_be_included_is_reported_at_once_where_it_is() -> None:
    assert told(
        "a: !include no.md\nb: !include b.yaml\nc: !include c.json\nd: !include ../up.md\n"
        "e: !include e.yaml\nf: !include b.yaml",
        b_yaml="x:\n  y: !include gone.md",
        c_json='{\n"a": }',
        e_yaml="a: 1\na: 2",
    ) == [
        (None, 1, "!include no.md: it is not there"),
        ("b.yaml", 2, "!include gone.md: it is not there"),
        ("c.json", 2, "not JSON: expecting value"),
        (None, 4, "!include ../up.md: it is outside the folder of the workflow file"),
        ("e.yaml", 2, "the key 'a' is duplicated, first on line 1"),
    ]


def test_files_that_include_each_other_are_reported_and_do_not_hang() -> None:
    (problem,) = told("!include a.yaml", a_yaml="\n- !include b.yaml", b_yaml="!include a.yaml")
    assert problem[:2] == ("b.yaml", 1)
    assert "a.yaml → b.yaml → a.yaml" in problem[2]
    (problem,) = told("!include main.yaml", main_yaml="x")
    assert "main.yaml → main.yaml" in problem[2]


def test_number_of_problems_is_limited() -> None:
    source = "\n".join(f"- !include {number}.md" for number in range(1000))

    assert len(told(source)) == 200


def test_included_values_count_as_often_as_they_are_included() -> None:
    thousand = f"[{'x,' * 999}]"
    assert len(read_with(f"[{'!include a.yaml,' * 199}]", a_yaml=thousand).value) == 199
    (problem,) = told(f"[{'!include a.yaml,' * 200}]", a_yaml=thousand)
    assert problem[2] == "more than 200,000 values, aliases and includes counted"


def test_included_levels_count_too() -> None:
    assert read_with(f"{'[' * 50}!include a.yaml{']' * 50}", a_yaml="[" * 50 + "]" * 50)
    (problem,) = told(f"{'[' * 51}!include a.yaml{']' * 51}", a_yaml="[" * 50 + "]" * 50)
    assert "nested more than 100 levels" in problem[2]


def test_text_that_is_repeated_counts_for_what_it_takes() -> None:
    # A megabyte 100 times is 100 values, and a hundred megabytes of nodes.
    (problem,) = told(f"[{'!include a.md,' * 100}]", a_md="x" * 1_000_000)
    assert "values, aliases and includes counted" in problem[2]
    line, message = refused(f"- &a {'x' * 500_000}\n- [{'*a,' * 100}]")
    assert line == 2
    assert "values, aliases and includes counted" in message
