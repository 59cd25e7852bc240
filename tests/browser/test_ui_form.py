"""The modules behind the form: what is typed is the value; controls are spelled as elsewhere."""

import json
from typing import Any

import pytest
from browser.ui import Tab

from uwf_git.model.schema_check import check_value
from uwf_git.model.text import visible_block

_OBJECT = {
    "type": "object",
    "properties": {
        "flag": {"type": "boolean"},
        "count": {"type": "integer"},
        "maybe": {"type": ["string", "null"]},
        "pick": {"enum": ["a", 1, None, {"x": 1}]},
        "fixed": {"const": "yes"},
        "list": {"type": "array", "items": {"$ref": "#/$defs/pair"}},
        "deep": {
            "type": "object",
            "properties": {
                "er": {"type": "object", "properties": {"est": {"type": "object", "properties": {
                    "at": {"type": "number"},
                }}}},
            },
        },
        "kind": {
            "anyOf": [
                {"type": "object", "properties": {"a/b": {"type": "string"}}, "required": ["a/b"]},
                {"type": "string"},
                {"type": "array", "items": {"type": "integer"}},
            ],
        },
        "any": {},
        "maybe list": {"type": ["array", "null"], "items": {"type": ["integer", "null"]}},
        "C#": {"type": ["object", "null"], "properties": {"really?": {"type": "boolean"}}},
        "__proto__": {"type": "string"},
    },
    "required": ["flag", "fixed"],
    "$defs": {"pair": {"type": "object", "properties": {"~": {"type": "string"}}}},
}  # fmt: skip
_VALUES: list[tuple[Any, Any]] = [
    (_OBJECT, {"flag": False, "fixed": "yes"}),
    (_OBJECT, {"flag": True, "fixed": "yes", "count": -3, "maybe": None, "pick": {"x": 1}}),
    (_OBJECT, {"flag": True, "fixed": "yes", "list": [{"~": "1"}, {}, {"~": ""}], "pick": None}),
    (_OBJECT, {"flag": True, "fixed": "yes", "deep": {"er": {"est": {"at": 0.5}}}}),
    (_OBJECT, {"flag": True, "fixed": "yes", "kind": {"a/b": "x"}, "any": [1, {"y": None}]}),
    (_OBJECT, {"flag": True, "fixed": "yes", "kind": [1, 2], "__proto__": "own"}),
    (_OBJECT, {"flag": True, "fixed": "yes", "kind": "a text"}),
    (_OBJECT, {"flag": True, "fixed": "yes", "maybe list": None, "C#": None}),
    (_OBJECT, {"flag": True, "fixed": "yes", "maybe list": [None], "C#": {"really?": True}}),
    ({"type": "string"}, "two\nlines"),
    ({"type": "integer"}, 9007199254740991),
    ({"type": "array", "items": {"type": "string"}}, ["a", "", "b"]),
    ({"$ref": "#/$defs/self", "$defs": {"self": {"type": "boolean"}}}, True),
]
# As JSON: Playwright loses a field named __proto__.
_TYPE = """async text => {
    const {collect, typeValue} = await import('/modules/schema.js');
    const [schema, value] = JSON.parse(text);
    const typed = typeValue(schema, value);
    return JSON.stringify(typed && collect(schema, typed));
}"""


def type_value(page: Any, schema: Any, value: Any) -> Any:
    """Type *value* into the form of *schema*; return what the form makes of it."""
    return json.loads(page.evaluate(_TYPE, json.dumps([schema, value])))


@pytest.fixture
def page_of(tab: Tab) -> Any:
    tab.open()
    return tab.page


def test_value_that_is_typed_is_the_value(page_of: Any) -> None:
    for schema, value in _VALUES:
        assert check_value(schema, value) == []
        found = type_value(page_of, schema, value)
        assert found is not None, value
        assert (found["value"], found["problems"]) == (value, {})


@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize("text", ["9007199254740993", " -9007199254740993", "1e400"])
def test_number_that_a_browser_cannot_hold_is_a_problem(page_of: Any, kind: str, text: str) -> None:
    asked = "async ([root, typed]) => (await import('/modules/schema.js')).collect(root, typed)"
    found = page_of.evaluate(asked, [{"type": kind}, {"": text}])
    assert found["problems"] == {"": f"a browser cannot hold {text.strip()} exactly"}
    assert found.get("value") is None


@pytest.mark.parametrize(
    ("schema", "typed", "shown"),
    [
        ({"type": ["boolean", "null"]}, {}, "Answeror nullYesNonull"),
        (
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            {"~?": "1"},
            "Whichstringnullvaluenull",
        ),
        ({"type": "integer", "default": 5}, {}, "Answera whole number"),
        ({"properties": {"n": {"const": 1, "default": 1}}}, {}, "n optionaldefault 1leave it out1"),
    ],
)
def test_form_says_what_can_be_done(page_of: Any, schema: Any, typed: Any, shown: str) -> None:
    asked = """async ([root, typed]) => {
        const {patch} = await import('/modules/dom.js');
        const {describeForm} = await import('/modules/form.js');
        const into = document.createElement('div');
        patch(into, describeForm({root, typed, problems: {}}));
        return into.textContent;
    }"""
    assert page_of.evaluate(asked, [schema, typed]) == shown


def test_what_was_typed_is_told_with_names_and_values(page_of: Any) -> None:
    properties = {"C#": {"type": "string"}, "?": {"enum": ["a", "b"]}, "1": {"type": "integer"}}
    typed = {
        "schema": {"type": "object", "properties": properties},
        "before": "What came before.",
        "fields": {"/C#": "", "/?": "1", "/1": "many"},
        "content": "A text.",
    }
    asked = """async typed => {
        const {readTyped, typeField} = await import('/modules/typed.js');
        typeField(typed, '/C#', 'sharp');
        return readTyped(typed);
    }"""
    told = page_of.evaluate(asked, typed)
    shown = json.dumps({"C#": "sharp", "?": "b"}, indent=2)
    assert told == f"What came before.\n\n{shown}\n\n/1: many\n\nA text."


def test_problem_at_a_name_that_is_a_number(page_of: Any) -> None:
    asked = """async () => {
        const {patch} = await import('/modules/dom.js');
        const {Problems} = await import('/modules/problems.js');
        const [into, problems] = [document.createElement('div'), new Problems()];
        Object.assign(problems, {byPlace: {'/1/0': 'short'}, names: {'/1': '1'}});
        patch(into, problems.describe());
        return into.querySelector('li').textContent;
    }"""
    assert page_of.evaluate(asked) == "1 1: short"


def test_what_was_sent_before_it_was_drawn_leaves_its_field(page_of: Any) -> None:
    asked = """async () => {
        const {h, patch} = await import('/modules/dom.js');
        const into = document.createElement('div');
        patch(into, h('input', {value: ''}));
        into.firstChild.value = 'a reason';
        patch(into, h('input', {value: ''}));
        return into.firstChild.value;
    }"""
    assert page_of.evaluate(asked) == ""


@pytest.mark.parametrize("value", [{"flag": True, "fixed": "yes", "other": 1}, {"fixed": "yes"}, 3])
def test_value_that_the_fields_cannot_hold_stays_json(page_of: Any, value: Any) -> None:
    assert type_value(page_of, _OBJECT, value) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"type": "string"}]},
        {"type": "object", "patternProperties": {"^x": {}}, "properties": {"a": {}}},
        {"$ref": "https://example.org/schema"},
        {"$ref": "#"},
        {"type": ["string", "integer"]},
        {"type": "object", "properties": {"a": {}}, "required": ["b"]},
    ],
)
def test_schema_that_no_form_can_promise_is_a_json_box(page_of: Any, schema: Any) -> None:
    asked = "async schema => { const {kindOf, resolve} = await import('/modules/schema.js'); "
    assert page_of.evaluate(
        f"{asked}return kindOf(schema, resolve(schema, schema)); }}", schema
    ) == ("json")


@pytest.mark.parametrize(("target", "name"), [("50%", "50%"), ("a%20b", "a b")])
def test_reference_is_followed_as_it_is_encoded(page_of: Any, target: str, name: str) -> None:
    asked = "async schema => (await import('/modules/schema.js')).resolve(schema, schema)"
    schema = {"$ref": f"#/$defs/{target}", "$defs": {name: {"const": 1}}}
    assert page_of.evaluate(asked, schema)["const"] == 1


@pytest.mark.parametrize(("time_ms", "tag"), [(0, "time"), (10**16 - 1, "span"), (None, "span")])
def test_time_that_no_date_has_is_no_error(page_of: Any, time_ms: int | None, tag: str) -> None:
    asked = "async ms => (await import('/modules/format.js')).since(ms).tag"
    assert page_of.evaluate(asked, time_ms) == tag


def test_controls_are_spelled_as_on_a_terminal(page_of: Any) -> None:
    marks = [*range(0xD800), *range(0xE000, 0x10000)]
    text = "".join(f"<{chr(each)}>" for each in marks) + "\r\n\U0001f600"
    spelled = page_of.evaluate(
        "async text => (await import('/modules/visible.js')).visible(text)", text
    )
    assert spelled == visible_block(text)
