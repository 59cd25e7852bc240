import pytest
from workflow_file import problems_of, read, spoiled

from uwf_git.engine.flow_text import check_flow_text
from uwf_git.model.definition.definition import Surroundings

CHECKER = "  checker:\n    outputSchema: {type: object, properties: {ok: {type: boolean}}}\n"


def checker(content: str) -> str:
    """Return the valid file with another checker; its content starts on line 6."""
    return spoiled(CHECKER, f"  checker:\n{content}\n")


def test_role_is_read_whole() -> None:
    role = read(
        checker(
            "    name: checker\n    description: Checks.\n    systemPrompt: Check.\n"
            "    extractPrompt: Extract.\n    outputSchema: {type: array}"
        )
    ).roles["checker"]
    assert (role.name, role.description, role.system_prompt) == ("checker", "Checks.", "Check.")
    assert (role.extract_prompt, role.output_schema) == ("Extract.", {"type": "array"})


@pytest.mark.parametrize("content", ["", "    {}", "    description:\n    systemPrompt: ~"])
def test_what_a_role_does_not_say_has_a_default(content: str) -> None:
    role = read(checker(content)).roles["checker"]
    assert (role.description, role.system_prompt, role.extract_prompt) == ("", "", None)
    assert role.output_schema == {"type": "object"}


@pytest.mark.parametrize(
    ("template", "problem"),
    [("${stat.x}", "stat"), ("${state.x", "has no"), ("${a = 1}", "=")],
)
def test_template_of_a_path_is_checked(template: str, problem: str) -> None:
    text = checker(f"    outputFile: '{template}'")
    around = Surroundings(check_text=check_flow_text)
    [(line, path, message)] = problems_of(text, around)
    assert (line, path) == (6, "roles.checker.outputFile")
    assert problem in message


def test_checks_are_commands_in_their_order() -> None:
    text = checker("    checks:\n      - make test\n      - |\n        sh -c 'a; b'\n")
    assert read(text).roles["checker"].checks == ("make test", "sh -c 'a; b'")


@pytest.mark.parametrize("schema", [True, False])
def test_schema_may_be_a_boolean(schema: bool) -> None:  # noqa: FBT001 (the value tested)
    text = checker(f"    outputSchema: {str(schema).lower()}")
    assert read(text).roles["checker"].output_schema is schema


def test_schema_is_another_word_for_output_schema() -> None:
    assert read(checker("    schema: {type: array}")).roles["checker"].output_schema == {
        "type": "array"
    }


def test_schema_may_point_into_itself() -> None:
    text = checker("    schema: {$ref: '#/$defs/a', $defs: {a: {type: object}}}")
    assert read(text).roles["checker"].output_schema


@pytest.mark.parametrize(
    ("content", "line", "path", "message"),
    [
        ("    [x]", 6, "", "must be a mapping with name, description, systemPrompt"),
        ("    text", 6, "", "must be a mapping with"),
        ("    name: other", 6, ".name", "the role is called 'checker' here, not 'other'"),
        ("    name: 1", 6, ".name", "must be text, not a number; write it in quotes"),
        ("    description: []", 6, ".description", "must be text, not a list"),
        ("    extractPrompt: {}", 6, ".extractPrompt", "must be text, not a mapping"),
        (
            "    outputSchema:",
            6,
            ".outputSchema",
            "must be a JSON Schema written out here, not emp",
        ),
        ("    schema: S1", 6, ".schema", "must be a JSON Schema written out here, not text"),
        ("    schema: {}\n    outputSchema: {}", 6, ".schema", "mean the same; keep one of them"),
        ("    schema: {$ref: 5GWKR8TN1V3JA}", 6, ".schema.$ref", "cannot refer to the store"),
        ("    schema: {$ref: 5gwkr8tn1v3ja}", 6, ".schema.$ref", "cannot refer to the store"),
        ("    schema: {$ref: '#/x'}", 6, ".schema", "'#/x' leads nowhere"),
        ("    $ref: 3FXJM7QS2A9PB", 6, ".$ref", "cannot refer to the store; write the role out"),
        ("    workflow: develop", 6, ".workflow", "no other workflow is known here"),
        ("    checks: make", 6, ".checks", "must be a list of commands, not text"),
        ("    checks: []", 6, ".checks", "must be a list of commands, not an empty list"),
        ("    checks: [make, ' ']", 6, ".checks[1]", "the command is empty"),
        ("    checks: [1]", 6, ".checks[0]", "must be text, not a number"),
        (
            "    checks:\n      - make\n      - say 'x",
            8,
            ".checks[1]",
            "cannot be split into words",
        ),
        (f"    checks: [{'a, ' * 21}]", 6, ".checks", "has 21 commands, of at most 20"),
        ("    outputFile: [x]", 6, ".outputFile", "must be text, not a list"),
        ("    outputFile: /tmp/x", 6, ".outputFile", "has to be relative to the work directory"),
        ("    outputFile: a/../../x", 6, ".outputFile", "leads out of the work directory"),
        ("    outputFile: .git/config", 6, ".outputFile", "is git's own"),
        ("    outputFile: docs/", 6, ".outputFile", "names no file"),
        ("    inputFiles: x", 6, ".inputFiles", "must be a list of paths or patterns, not text"),
        ("    inputFiles: [a, ../*]", 6, ".inputFiles[1]", "leads out of the work directory"),
        ("    inputFiles: [~]", 6, ".inputFiles[0]", "must be text, not empty"),
        ("    prompt: x", 6, ".prompt", "did you mean 'systemPrompt'?"),
    ],
)
def test_wrong_role_is_reported_with_its_place(
    content: str, line: int, path: str, message: str
) -> None:
    [problem] = problems_of(checker(content))
    assert problem[:2] == (line if path else 5, f"roles.checker{path}")
    assert message in problem[2]


def test_wrong_schema_is_reported_where_it_is_wrong() -> None:
    schema = "    schema:\n      properties:\n        a: {type: objekt}\n      required: a"
    assert [each[:2] for each in problems_of(checker(schema))] == [
        (8, "roles.checker.schema.properties.a.type"),
        (9, "roles.checker.schema.required"),
    ]


@pytest.mark.parametrize("roles", ["roles:", "roles: {}"])
def test_workflow_without_roles_is_reported(roles: str) -> None:
    text = f"name: x\n{roles}\nmoderator: [{{from: $START, to: $END}}]"
    assert problems_of(text) == [(2, "roles", "a workflow needs at least one role")]


def test_roles_that_are_a_list_are_reported_once() -> None:
    text = "name: x\nroles: [a, b]\nmoderator:\n- {from: $START, to: a}\nagentOverrides: {a: b}"
    assert problems_of(text) == [(2, "roles", "must be a mapping from names to roles, not a list")]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("$START", "$START is an end of the graph and cannot be a role"),
        ("__end__", "__end__ is an end of the graph and cannot be a role"),
        ("'two words'", "' ' (U+0020) is not allowed in it"),
        ("-t", "it starts with a dash, as an option does"),
        ("a/b", "'/' (U+002F) is not allowed in it"),
        ('"a\\nUwf-Status: completed"', "(U+000A) is not allowed in it"),
        ("dev>x", "'>' (U+003E) is not allowed in it"),
        ("''", "it is empty"),
        ("r" * 101, "it is longer than 100 characters"),
    ],
)
def test_bad_name_of_a_role_is_reported(name: str, message: str) -> None:
    text = spoiled("  writer:\n", f"  {name}: {{}}\n  writer:\n")
    first = problems_of(text)[0]
    assert (first[0], message in first[2]) == (3, True), first


def test_name_like_a_node_hash_is_no_trouble_for_a_role() -> None:
    assert (
        "investigation"
        in read(
            "name: x\nroles: {investigation: {}}\nmoderator:\n"
            "- {from: $START, to: investigation}\n- {from: investigation, to: $END}"
        ).roles
    )
