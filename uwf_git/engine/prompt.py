"""Prompts: everything an agent is told, in one text; the same context gives the same prompt.

Each omission is noted with its size, and the text of another agent is between marks that it cannot
have written itself.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from uwf_git.engine.turn_context import AgentContext, BranchStep, RoleView, Step
from uwf_git.model.builtin import follow_reference
from uwf_git.model.yaml_render import render_yaml

# Describe a JSON Schema in words, for a person or agent who has to fill it.
#
# ``is_complete`` is False if the words leave something out, so that the schema can be shown as
# well; a name, a constant or a limit is never paraphrased.

_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}

_LIMITS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} fields",
    "maxProperties": "at most {} fields",
    "pattern": "matching the regular expression {}",
    "format": "in the format {}",
}

_TOLD = {
    *_LIMITS, "uniqueItems", "type", "const", "enum", "description", "properties", "required",
    "items", "title", "$id", "$schema", "$comment", "$defs", "definitions", "$ref", "examples",
    "deprecated", "readOnly", "writeOnly", "additionalProperties", "default",
}  # fmt: skip

_ALTERNATIVES = ("oneOf", "anyOf")
_BELOW: dict[str, Any] = {}
"""Stands for the fields of an object that the lines below a field list."""

# A schema may contain itself; the words end here, and the schema itself has the rest.
_DEEPEST = 3
_MOST_LINES = 200
_LONGEST_CHAIN = 10


@dataclass(slots=True)
class SchemaWords:
    """Describes the parts of one schema; *root* is where its ``$ref`` lead."""

    root: Any
    is_complete: bool = True
    """True while everything so far could be described in words."""

    lines: list[str] = field(default_factory=list)

    def resolve(self, schema: Any) -> dict[str, Any]:
        """Return the schema that *schema* refers to; {} for what is not an object."""
        for _ in range(_LONGEST_CHAIN):
            if not isinstance(schema, dict):
                self.is_complete = self.is_complete and schema is True
                return {}
            target = schema.get("$ref")
            if not isinstance(target, str):
                return schema
            if len(schema) > 1:
                self.is_complete = False
            schema = follow_reference(self.root, target)
        self.is_complete = False
        return {}

    def list_fields(self, schema: Any, *, depth: int = 0) -> None:
        resolved = self.resolve(schema)
        properties = resolved.get("properties", {})
        required = resolved.get("required", [])
        if depth >= _DEEPEST or not properties.keys() >= set(required):
            self.is_complete = False
        if depth >= _DEEPEST:
            return
        for name, part in properties.items():
            if len(self.lines) >= _MOST_LINES:
                self.is_complete = False
                return
            member = self.resolve(part)
            inner = self.resolve(member["items"]) if "items" in member else member
            bare = inner | {"properties": _BELOW} if inner.get("properties") else inner
            shown = member | {"items": bare} if "items" in member else bare
            told = "required" if name in required else "optional"
            phrase = self.phrase(shown, is_optional=name not in required)
            line = f"{'  ' * depth}- `{name}` ({told}): {phrase}"
            description = _one_line(member.get("description"))
            self.lines.append(f"{line}. {description}" if description else line)
            if inner.get("properties"):
                self.list_fields(inner, depth=depth + 1)

    def phrase(self, schema: Any, *, depth: int = 0, is_optional: bool = False) -> str:
        resolved = self.resolve(schema)
        is_plain = resolved.get("additionalProperties", True) in (True, False)
        if not is_plain or set(resolved) - _TOLD - set(_ALTERNATIVES):
            self.is_complete = False
        if depth >= _DEEPEST:
            self.is_complete = False
            return "see the schema"
        told = [self._kind(resolved, depth=depth), *_limits(resolved)]
        # Nothing fills in a field that is required.
        if is_optional and "default" in resolved:
            told.append(f"{literal(resolved['default'])} if you do not say")
        return ", ".join(told)

    def _kind(self, schema: dict[str, Any], *, depth: int) -> str:
        if "const" in schema:
            return f"exactly {literal(schema['const'])}"
        if isinstance(schema.get("enum"), list):
            return f"one of {', '.join(literal(each) for each in schema['enum'])}"
        for keyword in _ALTERNATIVES:
            if isinstance(schema.get(keyword), list):
                return self._alternatives(schema, keyword, depth=depth)
        types = schema.get("type", ["object"] if "properties" in schema else [])
        names = [types] if isinstance(types, str) else types
        return " or ".join(self._type(name, schema, depth=depth) for name in names) or "any value"

    def _alternatives(self, schema: dict[str, Any], keyword: str, *, depth: int) -> str:
        if schema.keys() - {keyword, "description", "title"}:
            self.is_complete = False
        return " or ".join(self.phrase(each, depth=depth + 1) for each in schema[keyword])

    def _type(self, name: str, schema: dict[str, Any], *, depth: int) -> str:
        if name == "object" and schema.get("properties"):
            self.is_complete = False
            return f"an object with {', '.join(f'`{each}`' for each in schema['properties'])}"
        if name != "array" or "items" not in schema:
            return _TYPES.get(name, name)
        if self.resolve(schema["items"]).get("properties") is _BELOW:
            return "a list of objects, each with the fields below"
        return f"a list, each item {self.phrase(schema['items'], depth=depth + 1)}"


def literal(value: Any) -> str:
    """Write *value* as it has to be written: as JSON, which is YAML too."""
    return json.dumps(value, ensure_ascii=False)


def _limits(schema: dict[str, Any]) -> list[str]:
    limits = [
        words.format(literal(schema[keyword]))
        for keyword, words in _LIMITS.items()
        if keyword in schema
    ]
    return [*limits, "no item twice"] if schema.get("uniqueItems") is True else limits


def _one_line(text: Any) -> str:
    return " ".join(text.split()) if isinstance(text, str) else ""


# The part of a prompt that says how to answer, built from the role's JSON Schema.
#
# Every field of the schema is named with its type, and constants are literal, since models invent
# what is missing. If the words do not cover all of the schema, it is appended.

_OBJECT_KEYWORDS = {"properties", "required", "additionalProperties", "patternProperties"}


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
    forms = list_forms(words, resolved)
    is_object = _is_object(words, resolved)
    if not is_object and not forms:
        shape = f"End your answer with one fenced block of JSON that holds {words.phrase(schema)}:"
        parts = [f"{shape}\n\n```json\n…\n```"]
    elif len(forms) > 1:
        parts = _as_one_of(words, forms)
    else:
        form = forms[0] if forms else resolved
        words.list_fields(form)
        parts = [f"{_SHAPE} It looks like this:", _template(words, form)]
        if words.lines:
            parts.append("The fields, and no others:\n\n" + "\n".join(words.lines))
        parts.append(_YAML_RULES)
    if (is_object or forms) and _says_more(resolved, forms):
        words.is_complete = False
    if role.extract_prompt:
        parts.append(f"How to fill the fields:\n\n{role.extract_prompt.strip()}")
    if not words.is_complete:
        shown = json.dumps(schema, ensure_ascii=False, indent=2)
        parts.append(f"The whole JSON Schema that the fields have to fit:\n\n```json\n{shown}\n```")
    return "\n\n".join(parts)


def _is_object(words: SchemaWords, resolved: dict[str, Any], depth: int = 0) -> bool:
    types = resolved.get("type")
    if types is not None:
        return types == "object" or (isinstance(types, list) and "object" in types)
    if resolved.keys() & _OBJECT_KEYWORDS:
        return True
    for keyword in _ALTERNATIVES if depth < _DEEPEST else ():
        if isinstance(choices := resolved.get(keyword), list):
            return any(_is_object(words, words.resolve(each), depth + 1) for each in choices)
    # true, {} and a schema of constraints alone allow any value, so fields as well.
    return not resolved.keys() & {"const", "enum"}


def list_forms(words: SchemaWords, resolved: dict[str, Any]) -> list[dict[str, Any]]:
    """List the alternatives, if *resolved* is only a choice between kinds of objects."""
    for keyword in _ALTERNATIVES:
        choices = resolved.get(keyword)
        if isinstance(choices, list):
            forms = [words.resolve(choice) for choice in choices]
            return forms if all(form.get("properties") for form in forms) else []
    return []


def title_of(form: dict[str, Any]) -> str:
    return _one_line(str(form.get("description") or form.get("title") or ""))


def _says_more(resolved: dict[str, Any], forms: list[dict[str, Any]]) -> bool:
    shown = {
        "type", "properties", "required", "additionalProperties", "title", "description",
        "$id", "$schema", "$comment", "$defs", "definitions",
    }  # fmt: skip
    if forms:
        return bool(
            resolved.keys() - {*_ALTERNATIVES, *shown}
            or resolved.get("properties")
            or any(form.keys() - shown for form in forms)
        )
    if resolved.get("properties"):
        # No others are asked for.
        shown.add("propertyNames")
    return bool(resolved.keys() - shown)


def _as_one_of(words: SchemaWords, forms: list[dict[str, Any]]) -> list[str]:
    parts = [f"{_SHAPE} The block has one of these {len(forms)} forms."]
    for number, form in enumerate(forms, 1):
        words.lines = []
        words.list_fields(form)
        title = title_of(form)
        heading = f"Form {number}: {title}" if title else f"Form {number}:"
        parts += [heading, _template(words, form), "\n".join(words.lines)]
    return [*parts, _YAML_RULES]


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
    return render_yaml({name: 0}).removesuffix(": 0\n")


def _place(words: SchemaWords, schema: Any) -> str:
    """Show the value of a field: its constant, or its type."""
    resolved = words.resolve(schema)
    if "const" in resolved:
        return literal(resolved["const"])
    if isinstance(resolved.get("enum"), list):
        return f"<{' | '.join(literal(each) for each in resolved['enum'])}>"
    words_of_type = {**_TYPES, "null": "value"}.get(str(resolved.get("type")), "value")
    return f"<{words_of_type.removeprefix('a ').removeprefix('an ')}>"


# What a prompt says of a try: why the last one was rejected, and what a verifier judges.

_LONGEST = 8_000


def _build_try(context: AgentContext) -> list[str]:
    """Return the parts about the try that the turn belongs to: what to judge, or what was wrong."""
    tried = context.tried
    if tried is None or (tried.verifies is None and tried.rejected is None):
        return []
    is_known = tried.of is not None and tried.number <= tried.of
    number = f"try {tried.number} of {tried.of}" if is_known else f"try {tried.number}"
    told: dict[str, tuple[str, str]] = {}
    if tried.verifies is not None:
        heading = "# What you verify"
        who = f"You judge the work of {tried.verifies}, which is the newest step above ({number})."
        what = "Judge what is really there, not what the report says of it. "
        what += "Do not do the work yourself."
        told["work"] = "This is what the work was about:", _as_text(tried.work_input or "")
        told["checks"] = "It passed its checks, which printed:", tried.checked
    elif rejected := tried.rejected:
        heading = "# Your work was rejected"
        who = f"This is {number}. {rejected.role} looked at the last one and rejected it."
        what = "What you did is still there: put right what is wrong with it."
        issues = "\n".join(f"- {each}" for each in rejected.issues)
        told["issues"] = "What is wrong:", issues
        told["suggestion"] = "What to do about it:", rejected.suggestion
        if not issues and not rejected.suggestion:
            said = filter(None, (_as_text(rejected.meta), rejected.content))
            told["verdict"] = "This is the verdict:", "\n\n".join(said)
    parts = [heading, f"{who} {what}"]
    for tag, (words, text) in told.items():
        if text or tag == "verdict":
            parts += [words, mark(tag, _cut(text, _LONGEST, context))]
    return parts


DEFAULT_BUDGET = 120_000
"""Characters, some 30,000 tokens: room for the agent's own work in every current model."""

_MOST_OLDER = 50
"""Steps before the newest that are shown, so that a prompt costs the same at any depth."""

_OUTPUT_FILE = (
    "Before you end, write the fields as one JSON object into {}, a file of the work directory: "
    "it is read first. If you cannot, answer as follows."
)
_CHECKS = "Your answer is taken only if these commands then succeed in the work directory:"
_LONGEST_META = 2_000
_LONGEST_HINT = 8_000


def build_prompt(context: AgentContext, *, budget: int = DEFAULT_BUDGET) -> str:
    """Build the prompt of a turn: the role, the task, the thread so far, how to answer.

    *budget* limits task, thread and state, in characters. The newest step is whole if it
    fits, up to 50 older ones with their meta, newest first; notes say what was left out and how to
    get it, and no step that is left out is read. The role's own words and the answer format are
    never cut.
    """
    task = _cut(context.start.prompt, budget // 2, context)
    given = "" if context.input is None else _cut(_as_text(context.input), budget // 4, context)
    files = _build_files(context, budget // 2)
    left = max(0, budget - len(task) - len(given) - sum(map(len, files)))
    state = _cut(literal(context.state), left // 4, context) if context.state else ""
    history = _build_history(context, left - len(state))
    hint = context.hint and mark("hint", _cut(context.hint, _LONGEST_HINT, context))
    role = context.current_role
    parts = [
        f"# You are {role.name}",
        role.description.strip(),
        role.system_prompt.strip(),
        "# The task",
        mark("task", task),
        *(["# What this turn is about", mark("input", given)] if given else []),
        *files,
        "# Where you are",
        _build_position(context),
        *history,
        *(["# The state of the thread", mark("state", state)] if state else []),
        *_build_try(context),
        *(["# A hint", "A person who watches this thread says to you:", hint] if hint else []),
        *_build_last_error(context),
        "# How to answer",
        _OUTPUT_FILE.format(role.output_file) if role.output_file is not None else "",
        build_answer_format(role),
        *([_CHECKS, mark("checks", "\n".join(role.checks))] if role.checks else []),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _build_position(context: AgentContext) -> str:
    workflow, role = context.workflow, context.current_role.name
    turn = "your first turn" if context.visit == 1 else f"your {_ordinal(context.visit)} turn"
    number = max(context.depth, len(context.steps)) + 1
    thread = f"This is step {number} of a thread of the workflow {workflow.name}"
    lines = [f"{thread}, and {turn} as {role}."]
    if context.node is not None and context.node.label != role:
        lines.append(f"You act as its node {context.node.label}.")
    if context.iteration:
        lines.append(f"It is the {_ordinal(context.iteration + 1)} pass of the loop around it.")
    if context.start.entry is not None:
        lines.append("You work in a branch; other agents work in others at the same time.")
    if workflow.description:
        lines.append(f"What the workflow is for: {_one_line(workflow.description)}")
    if context.workdir:
        lines.append(f"You work in the directory {context.workdir}.")
    return "\n".join(lines)


def _build_files(context: AgentContext, budget: int) -> list[str]:
    """Show the files that the turn is given; of those that are too long together, parts."""
    if not context.input_files:
        return []
    parts = ["# Files that you are given"]
    left, room = budget, {}
    for count, file in enumerate(sorted(context.input_files, key=lambda each: len(each.content))):
        room[file.path] = left // (len(context.input_files) - count)
        left -= min(len(file.content), room[file.path])
    for file in context.input_files:
        if file.problem is not None:
            parts.append(f"## {file.path}\n\n(It {file.problem}.)")
            continue
        whole = f"the file {file.path} has all of it"
        text = _shorten(file.content, room[file.path], whole)
        parts.append(f"## {file.path}\n\n{mark('file', text)}")
    return parts


def _build_last_error(context: AgentContext) -> list[str]:
    if context.last_error is None:
        return []
    error = context.last_error
    attempt = f"This is attempt {context.attempt} at this step."
    output = mark("output", _cut(error.output, _LONGEST_HINT, context))
    return [
        "# The last attempt failed",
        f"{attempt} The last one failed because of this ({error.kind}):",
        mark("error", _cut(error.message, _LONGEST_META, context)),
        *(["What the check printed:", output] if error.output else []),
        "Try another way, so that it does not fail again.",
    ]


def _build_history(context: AgentContext, budget: int) -> list[str]:
    # A context may have only the last steps of its thread.
    count = max(context.depth, len(context.steps))
    if count == 0:
        return ["Nothing has been done yet: yours is the first step."]
    if not context.steps:
        return [f"The steps before yours are left out; {_whole(context)}."]
    last = _build_newest(context, count, budget * 3 // 4)
    heading = "# The thread so far, oldest step first"
    if count == 1:
        return [heading, last]
    note = f"The texts of the steps before the newest are left out; {_whole(context)}."
    return [heading, note, *_build_older(context, count, budget - len(last)), last]


def _build_newest(context: AgentContext, count: int, budget: int) -> str:
    step = context.steps[-1]
    branches = step.branches[:_MOST_OLDER]
    share = budget // (1 + len(branches))
    parts = _build_said(context, f"## Step {count}, the newest: {step.role}", step, share)
    for each in branches:
        parts += _build_said(context, f"### A branch of it: {each.role}", each, share)
    if left := len(step.branches) - len(branches):
        parts.append(f"[… {left:,} branches are left out; {_whole(context)} …]")
    return "\n\n".join(parts)


def _build_said(context: AgentContext, heading: str, step: BranchStep, budget: int) -> list[str]:
    meta = _cut(literal(step.meta), budget // 4, context)
    content = _cut(step.content, budget - len(meta), context)
    parts = [heading, mark("meta", meta)]
    return [*parts, mark("content", content)] if content else parts


def tell_branches(step: Step) -> str:
    """Return what the branches of a join said, to stand below its own text; "" for no join."""
    said = (f"{each.role}: {literal(each.meta)}\n{each.content}" for each in step.branches)
    return "".join(f"\n\n{each}" for each in said)


def _build_older(context: AgentContext, count: int, budget: int) -> list[str]:
    """Show the steps before the newest, as many of the latest as there is room for."""
    shown: list[str] = []
    left_out = count - 1
    for step in reversed(context.steps[-_MOST_OLDER - 1 : -1]):
        meta = mark("meta", _cut(literal(step.meta), _LONGEST_META, context))
        size = f", {len(step.content):,} characters of text" if step.content else ""
        text = f"## Step {left_out}: {step.role}{size}\n\n{meta}"
        budget -= len(text)
        if budget < 0:
            break
        shown.append(text)
        left_out -= 1
    if left_out:
        shown.append(f"[… the first {left_out:,} steps are left out; {_whole(context)} …]")
    return shown[::-1]


def _cut(text: str, limit: int, context: AgentContext) -> str:
    return _shorten(text, limit, _whole(context))


def _shorten(text: str, limit: int, whole: str) -> str:
    """Keep the beginning and the end of a text that is too long; a note says where *whole* is."""
    if len(text) <= limit:
        return text
    head, tail = max(0, limit * 2 // 3), max(0, limit // 3)
    left_out = len(text) - head - tail
    note = f"\n[… {left_out:,} characters left out; {whole} …]\n"
    return text[:head] + note + text[len(text) - tail :]


def _whole(context: AgentContext) -> str:
    return f"`uwf thread context {context.thread_id}` prints all of it"


def mark(tag: str, text: str) -> str:
    """Put *text* between tags that do not occur in it, in whatever spelling."""
    folded = text.casefold()
    while f"<{tag}" in folded or f"</{tag}" in folded:
        tag += "-"
    ending = "" if text.endswith("\n") else "\n"
    return f"<{tag}>\n{text}{ending}</{tag}>"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else literal(value)


def _ordinal(number: int) -> str:
    is_teen = 10 < number % 100 < 20  # noqa: PLR2004 (11th, 12th, 13th)
    ending = "th" if is_teen else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
