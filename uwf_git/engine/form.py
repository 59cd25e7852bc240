"""Forms: ask a person for the fields of a JSON Schema; what was not given is left out."""

from collections.abc import Callable
from typing import Any, Protocol

from uwf_git.engine.prompt import SchemaWords, list_forms, literal, title_of

_YES, _NO = {"y", "yes", "true"}, {"n", "no", "false"}
# What JSON and quoted YAML begin with.
_MARKS = {"[", "{", "'", '"'}
_SCALARS = {"string", "integer", "number", "boolean"}

_UNSET: Any = object()
"""No value: an optional field that was skipped."""


class FormIO(Protocol):
    def say(self, text: str) -> None:
        """Show *text*."""

    def read_line(self, prompt: str = "> ") -> str | None:
        """Read a line; None at end of input (Ctrl-D)."""


CheckAnswer = Callable[[Any, Any], str]
"""Return what is wrong with a value under a schema; "" if it fits."""


def list_questions(schema: Any) -> list[str]:
    """Return a line for each field that a value of *schema* may have; one if it has no fields."""
    words = SchemaWords(schema)
    resolved = words.resolve(schema)
    shapes = _find_shapes(words, resolved) or [resolved]
    for number, shape in enumerate(shapes, 1):
        if len(shapes) > 1:
            words.lines.append(f"{number}. {title_of(shape)}".rstrip(" :"))
        words.list_fields(shape, depth=0)
    return words.lines or [words.phrase(resolved)]


def fill_form(asker: FormIO, schema: Any, *, check: CheckAnswer, before: Any = None) -> Any:
    """Ask for a value that fits *schema*; an empty input keeps the previous answer, *before*."""
    form = _Form(asker, schema, check)
    value = before
    while True:
        value = form.ask(value)
        problem = check(value, schema)
        if not problem:
            return value
        asker.say(f"That does not fit the schema: {problem}\nTry again; Enter keeps a value.\n")


class _Form:
    def __init__(self, asker: FormIO, schema: Any, check: CheckAnswer) -> None:
        self._asker = asker
        self._schema = schema
        self._check = check
        self._words = SchemaWords(schema)

    def ask(self, before: Any) -> Any:
        shape = self._choose_shape(self._words.resolve(self._schema))
        if not shape.get("properties"):
            self._asker.say(f"The answer: {self._words.phrase(shape)}\n")
            nothing = _UNSET if self._check({}, self._schema) else {}
            kept = nothing if before is None else before
            return self._ask_value(shape, is_required=True, before=kept)
        known = before if isinstance(before, dict) else {}
        answers = {
            name: self._ask_field(name, part, shape, known.get(name, _UNSET))
            for name, part in shape["properties"].items()
        }
        return {name: value for name, value in answers.items() if value is not _UNSET}

    def _choose_shape(self, resolved: dict[str, Any]) -> dict[str, Any]:
        """Return the schema itself, or the alternative that the person chooses."""
        shapes = _find_shapes(self._words, resolved)
        if not shapes:
            return resolved
        for number, shape in enumerate(shapes, 1):
            title = title_of(shape)
            fields = ", ".join(
                f"{name} = {literal(part['const'])}"
                if isinstance(part, dict) and "const" in part
                else name
                for name, part in shape["properties"].items()
            )
            self._asker.say(f"  {number}  {title}{': ' if title else ''}{fields}\n")
        while True:
            line = (self._asker.read_line("which? ") or "").strip()
            if line.isdecimal() and 1 <= int(line) <= len(shapes):
                return shapes[int(line) - 1]
            self._asker.say(f"type a number from 1 to {len(shapes)}\n")

    def _ask_field(self, name: str, part: Any, shape: dict[str, Any], before: Any) -> Any:
        resolved = self._words.resolve(part)
        is_required = name in shape.get("required", [])
        # There is no choice, except whether an optional constant is present.
        if "const" in resolved and is_required:
            self._asker.say(f"{name}: {literal(resolved['const'])}\n")
            return resolved["const"]
        told = "" if is_required else " (optional, Enter skips it)"
        description = " ".join(str(resolved.get("description", "")).split())
        about = f" {description}" if description else ""
        phrase = self._words.phrase(part, is_optional=not is_required)
        self._asker.say(f"{name}{told}: {phrase}.{about}\n")
        return self._ask_value(resolved, is_required=is_required, before=before)

    def _ask_value(self, schema: dict[str, Any], *, is_required: bool, before: Any) -> Any:
        prompt = f"[{literal(before)}] > " if before is not _UNSET else "> "
        choices = schema.get("enum")
        if isinstance(choices, list):
            for number, choice in enumerate(choices, 1):
                self._asker.say(f"  {number}  {literal(choice)}\n")
        while True:
            lines = self._read_lines(schema, prompt)
            if not lines:
                if before is not _UNSET:
                    return before
                if not is_required:
                    return _UNSET
                empty = '; an empty text is ""' if _kind(schema) in {"", "string"} else ""
                self._asker.say(f"this is needed{empty}; Ctrl-C leaves without an answer\n")
                continue
            value, problem = self._read(lines, schema)
            if not problem:
                return value
            self._asker.say(f"{problem}\n")

    def _read(self, lines: list[str], schema: dict[str, Any]) -> tuple[Any, str]:
        """Return the value that was typed, and what is wrong with it."""
        # With the root's definitions its references resolve.
        root = self._schema if isinstance(self._schema, dict) else {}
        whole = {name: root[name] for name in ("$defs", "definitions") if name in root} | schema
        if "items" in schema:
            schema = schema | {"items": self._words.resolve(schema["items"])}
        value = None
        try:
            value = _read_value(lines, schema)
            problem = self._check(value, whole)
        except ValueError as unfit:
            problem = str(unfit)
        text = "\n".join(lines)
        # A text need not be YAML; what begins as JSON is meant so.
        is_text = problem and text.lstrip()[:1] not in _MARKS and not self._check(text, whole)
        return (text, "") if is_text else (value, problem)

    def _read_lines(self, schema: dict[str, Any], prompt: str) -> list[str]:
        first = self._asker.read_line(prompt)
        if not first or _is_scalar(schema):
            return [first] if first else []
        lines = [first]
        if _kind(schema) == "array" and _is_scalar(self._words.resolve(schema.get("items", {}))):
            self._asker.say("the next item, or Enter\n")
        while line := self._asker.read_line("… "):
            lines.append(line)
        return lines


def _find_shapes(words: SchemaWords, resolved: dict[str, Any]) -> list[dict[str, Any]]:
    return [] if resolved.get("properties") else list_forms(words, resolved)


def _kind(schema: dict[str, Any]) -> str:
    """Return the type of a value other than null; "" if there are several."""
    types = schema.get("type")
    names = [types] if isinstance(types, str) else types if isinstance(types, list) else []
    names = [name for name in names if name != "null"]
    return str(names[0]) if len(names) == 1 else ""


def _is_scalar(schema: dict[str, Any]) -> bool:
    return _kind(schema) in _SCALARS or isinstance(schema.get("enum"), list) or "const" in schema


def _read_value(lines: list[str], schema: dict[str, Any]) -> Any:
    line = lines[0]
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(choices, list):
        return _read_choice(line.strip(), choices)
    if line.strip() == "null" and "null" in schema.get("type", []):
        return None
    items = schema.get("items")
    match _kind(schema):
        case "string":
            return "" if line.strip() == '""' else line
        case "boolean":
            word = line.strip().lower()
            if word not in _YES | _NO:
                raise ValueError("type yes or no")
            return word in _YES
        case "integer" | "number" as kind:
            return _read_number(line.strip(), kind)
        case "array" if items is not None and _is_scalar(items):
            if line.lstrip()[:1] != "[":
                return [_read_value([each], items) for each in lines]
    return _read_yaml("\n".join(lines))


def _read_choice(text: str, choices: list[Any]) -> Any:
    for choice in choices:
        if text in (choice, literal(choice)):
            return choice
    if text.isdecimal() and 1 <= int(text) <= len(choices):
        return choices[int(text) - 1]
    raise ValueError(f"type one of these, or its number: {', '.join(map(literal, choices))}")


def _read_number(text: str, kind: str) -> int | float:
    """Return a JSON number: no infinity, and 3 for 3.0."""
    try:
        number = int(text) if kind == "integer" else float(text)
        return int(number) if number == int(number) else number
    except (ValueError, OverflowError):
        raise ValueError("type a whole number" if kind == "integer" else "type a number") from None


def _read_yaml(text: str) -> Any:
    # PyYAML costs 12 ms, and few fields are so complex.
    from uwf_git.model.yaml_reader import BadYaml, parse_yaml  # noqa: PLC0415 (see above)

    try:
        value = parse_yaml(text).value
    except BadYaml as error:
        raise ValueError(f"that is neither JSON nor YAML: {error.message}") from None
    is_plain = isinstance(value, str) and text.lstrip()[:1] not in _MARKS
    # YAML ends a plain text at ` #`, and joins its lines.
    return text if is_plain else value
