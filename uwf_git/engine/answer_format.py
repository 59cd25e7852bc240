"""The part of a prompt that says how to answer, built from the role's JSON Schema.

Every field of the schema is named with its type, and constants are literal, since models invent
what is missing. If the words do not cover all of the schema, it is appended.
"""

import json
from typing import Any

from uwf_git.engine.schema_words import SchemaWords, literal
from uwf_git.engine.turn_context import RoleView

_OBJECT_KEYWORDS = {"properties", "required", "additionalProperties", "patternProperties"}

_ALTERNATIVES = ("oneOf", "anyOf")

_SHAPE = (
    "Begin your answer with a block of fields between two lines of `---`, and write your text "
    "after it. The very first line of the answer is `---`: no preamble, no code fence around it."
)

_WORDS_OF_YAML = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

_YAML_RULES = (
    "The fields are YAML. Put a text in double quotes if it holds `: ` or ` #`, is empty, is a "
    "word like true or null, or begins with anything but a letter. Write a text of several lines "
    "as `name: |`, with its lines indented by two spaces below."
)


def build_answer_format(role: RoleView) -> str:
    """Describe how to answer so that the meta fits the role's schema."""
    schema = role.output_schema
    words = SchemaWords(schema)
    resolved = words.resolve(schema)
    forms = _forms(words, resolved)
    if not _is_object(resolved) and not forms:
        parts = _as_json(words, schema)
    elif len(forms) > 1:
        parts = _as_one_of(words, forms)
    else:
        parts = _as_front_matter(words, forms[0] if forms else resolved)
    if _says_more(resolved, forms):
        words.is_complete = False
    if role.extract_prompt:
        parts.append(f"How to fill the fields:\n\n{role.extract_prompt.strip()}")
    if not words.is_complete:
        shown = json.dumps(schema, ensure_ascii=False, indent=2)
        parts.append(f"The whole JSON Schema that the fields have to fit:\n\n```json\n{shown}\n```")
    return "\n\n".join(parts)


def _is_object(resolved: dict[str, Any]) -> bool:
    types = resolved.get("type")
    if types is None:
        # true, {} and a schema of constraints alone allow any value, so fields as well.
        return not resolved.keys() & {"const", "enum"} or bool(resolved.keys() & _OBJECT_KEYWORDS)
    return types == "object" or (isinstance(types, list) and "object" in types)


def _forms(words: SchemaWords, resolved: dict[str, Any]) -> list[dict[str, Any]]:
    """List the alternatives, if *resolved* is only a choice between kinds of objects."""
    for keyword in _ALTERNATIVES:
        choices = resolved.get(keyword)
        if isinstance(choices, list):
            forms = [words.resolve(choice) for choice in choices]
            return forms if all(form.get("properties") for form in forms) else []
    return []


def _says_more(resolved: dict[str, Any], forms: list[dict[str, Any]]) -> bool:
    """Check whether the root, or a form, says more than the list of its fields shows."""
    shown = {
        "type", "properties", "required", "additionalProperties", "title", "description",
        "$id", "$schema", "$comment", "$defs", "definitions",
    }  # fmt: skip
    if forms:
        return bool(
            resolved.keys() - {*_ALTERNATIVES, *shown} - {"properties"}
            or resolved.get("properties")
            or any(form.keys() - shown for form in forms)
        )
    return bool(resolved.keys() - shown) and _is_object(resolved)


def _as_front_matter(words: SchemaWords, form: dict[str, Any]) -> list[str]:
    words.list_fields(form)
    parts = [f"{_SHAPE} It looks like this:", _template(words, form)]
    if words.lines:
        parts.append("The fields, and no others:\n\n" + "\n".join(words.lines))
    return [*parts, _YAML_RULES]


def _as_one_of(words: SchemaWords, forms: list[dict[str, Any]]) -> list[str]:
    parts = [f"{_SHAPE} The block has one of these {len(forms)} forms."]
    for number, form in enumerate(forms, 1):
        words.lines = []
        words.list_fields(form)
        title = " ".join(str(form.get("description") or form.get("title") or "").split())
        heading = f"Form {number}: {title}" if title else f"Form {number}:"
        parts += [heading, _template(words, form), "\n".join(words.lines)]
    return [*parts, _YAML_RULES]


def _as_json(words: SchemaWords, schema: Any) -> list[str]:
    kind = words.phrase(schema)
    return [f"End your answer with one fenced block of JSON that holds {kind}:\n\n```json\n…\n```"]


def _template(words: SchemaWords, form: dict[str, Any]) -> str:
    fields = form.get("properties", {})
    lines = [f"{_key(name)}: {_place(words, part)}" for name, part in fields.items()]
    lines = lines or ["<name>: <value>"]
    # No code fence around it: models copy what they see.
    return "\n".join(["---", *lines, "---", "<your text>"])


def _key(name: str) -> str:
    """Write a field's name as a YAML key: `1`, `no` and `#x` need quotes."""
    is_word = name.isascii() and name.removeprefix("$").isidentifier()
    if is_word and name.lower() not in _WORDS_OF_YAML:
        return name
    # The import takes 5 ms, and nearly all names are plain words.
    from uwf_git.model.yaml.render import render_yaml  # noqa: PLC0415

    return render_yaml({name: 0}).removesuffix(": 0\n")


def _place(words: SchemaWords, schema: Any) -> str:
    """Show the value of a field: its constant, or its type."""
    resolved = words.resolve(schema)
    if "const" in resolved:
        return literal(resolved["const"])
    if isinstance(resolved.get("enum"), list):
        return f"<{' | '.join(literal(each) for each in resolved['enum'])}>"
    return f"<{_KINDS.get(str(resolved.get('type')), 'value')}>"


_KINDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "array": "list",
    "object": "object",
}
