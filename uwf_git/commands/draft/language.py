"""The reference of the language of workflow files, for whoever writes one.

It is made of the validator's own tables: a key that the validator knows and this module has no
words for fails a test, and so does an example that is not as right or as wrong as it claims.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from uwf_git.engine.flow_text import NAMES
from uwf_git.engine.javascript.parser import METHODS, PRECEDENCE
from uwf_git.model.definition.config import SETTINGS
from uwf_git.model.definition.flow_fields import CHOICES, KEYS, POLICIES
from uwf_git.model.definition.roles import role_keys
from uwf_git.model.definition.source import FLOW_KEYS, GRAPH_KEYS
from uwf_git.model.flow import DEFAULT_BOUND

TOP: Mapping[str, str] = {
    "name": "one word, letters and digits and dashes; the name to start it by",
    "description": "one sentence: what it is for",
    "root": "the outermost container; the file then has no `moderator`",
    "moderator": "`graph:`, a table of transitions; the file then has no `root`",
    "roles": "who does the work: a mapping from names to roles; any word may name a role",
    "initialState": "the state that it begins with: a mapping",
    "agentOverrides": "`{ROLE: human}`: a person plays ROLE",
    "config": "limits, see below",
    "language": "of the expressions beside `root`: javascript (the default) or jsonata",
    "version": "'1.0', or left out",
}
"""The keys of a file. defaultAgent is left out: commands are the business of who runs it."""

ROLE: Mapping[str, str] = {
    "description": "one line, for people and for the other roles",
    "systemPrompt": "what to do and what not; it is given the task and the steps before anyway",
    "outputSchema": "a JSON Schema of the fields that it answers with, besides any text; every"
    " field that a condition or a template reads is `required` in it; `true` for text alone",
    "extractPrompt": "how to fill the fields, if that is not plain",
    "workflow": "in a graph: the workflow that plays this role in place of an agent",
    "outputFile": "a path below the work directory where the agent may leave its fields as JSON",
    "inputFiles": "globs of files below the work directory, whose text is given with each turn",
}
"""The keys of a role. `name` repeats its key, and `schema` is another word for outputSchema.

`checks` are left out: commands are the business of who runs it.
"""

NODE: Mapping[str, str] = {
    "type": "what it is",
    "id": "a name that no other node has",
    "name": "a label for people",
    "description": "one line for people",
    "nodes": "a list of containers and agents",
    "else": "such a list, for when the condition does not hold",
    "agentId": "the role that does it; each needs its entry in `roles`",
    "input": "what this turn is about: text or a mapping, with templates",
    "output": "the key of the state for the whole result; without it `<agentId>Output`",
    "inputFiles": "globs of files below the work directory, whose text is given with the input",
    "verifiedBy": "`{agentId, when, input, output, inputFiles, timeout}`: a role that judges the"
    " work, and the condition over its answer (`meta.verified === true`) under which it counts;"
    " `retries` then counts tries",
    "condition": "an expression, in quotes; of a loop asked after each pass: go on while it holds",
    "maxIterations": f"the most passes, {DEFAULT_BOUND} unless set; always set it",
    "over": "an expression for a list; of a loop in place of maxIterations: a pass for each item",
    "as": "the name of an item in expressions (`item`); its number is `state.<as>Index`",
    "use": "the name of a registered workflow, run as one step",
    "merge": "what counts if branches set a key differently: one word, or `{key: word}`, of "
    + ", ".join(POLICIES),
    "tolerate": "how many branches may fail, with onError: continue",
    "retries": "how often a failed turn is tried again",
    "timeout": "the time of a turn, in milliseconds",
    "onError": "what a failure means; a branch goes by the policy of its own parallel, map or"
    " workflow",
    "onExhausted": "at the last pass, if the condition still holds: go on, or stop for a person",
    "join": "whether all branches count, or the first that completes",
    "isolation": "each branch works in a git worktree of its own",
}
"""The keys of containers and agents."""

KINDS: Mapping[str, str] = {
    "agent": "one turn of a role",
    "sequential": "one after another",
    "parallel": "all at once, each node a branch",
    "loop": "again and again",
    "conditional": "`nodes` if the condition holds, `else` if not",
    "map": "all at once, the list `nodes` once for each item of a list",
    "workflow": "another workflow as one step",
}


class Example(NamedTuple):
    """How something is written, and how it is not."""

    wrong: str
    right: str


EXPRESSIONS = (
    Example("state.ok = true", "state.ok === true"),
    Example("state.ok and state.done", "state.ok && state.done"),
    Example("not state.ok", "state.ok !== true"),
    Example("meta.ok === true", "state.ok === true"),
    Example("reviewer.points.length > 0", "state.points.length > 0"),
    Example("state.votes.reduce((a, b) => a + b)", "state.votes.filter(v => v).length >= 2"),
    Example("/urgent/.test(state.title)", "state.title.includes('urgent')"),
    Example("state.kind in ['bug', 'fix']", "['bug', 'fix'].includes(state.kind)"),
)  # fmt: skip
"""Conditions of containers."""

TEMPLATES = (
    Example("${points.join(', ')}", "${state.points.join(', ')}"),
    Example("${JSON.stringify(state.plan)}", "${state.plan}"),
    Example("${state.plan", "The plan: ${state.plan}"),
)
"""Inputs of agents."""

CONDITIONS = (
    Example("meta.approved == true", "meta.approved = true"),
    Example("meta.approved && depth < 6", "meta.approved and depth < 6"),
    Example("meta.kind === 'bug'", 'meta.kind = "bug"'),
    Example("!meta.approved", "$not(meta.approved)"),
    Example("not meta.approved", "meta.approved = false"),
)
"""Conditions of a graph."""


def describe_language() -> str:
    """Return the reference, in Markdown."""
    parts = [
        "## The language of workflow files",
        _FILE,
        "### The file",
        _list({key: TOP[key] for key in _top_keys()}),
        f"`config` may have {_quoted(SETTINGS)}.",
        "### A role",
        _list({key: ROLE[key] for key in role_keys() if key in ROLE}),
        "### Containers and agents",
        *_describe_nodes(),
        "### State",
        _STATE,
        "### Expressions of containers: JavaScript",
        _describe_javascript(),
        _compare(EXPRESSIONS),
        _TEMPLATES,
        _compare(TEMPLATES),
        "### A graph",
        _GRAPH,
        _compare(CONDITIONS),
    ]
    return "\n\n".join(parts) + "\n"


_FILE = """\
A workflow is one YAML file. It has `root`, a tree of containers (usual), or `moderator`, a table of
transitions (a graph). Keys that are not named here do not exist."""

_TEMPLATES = """\
Templates are `${expression}` within a text; alone they keep the type of the value. What is
undefined is an error. In YAML, `"\\n"` within an expression breaks it: use `'; '`, or a
mapping as input."""

_STATE = """\
The fields of each answer become members of the state: a role that answers `{approved: true}` sets
`state.approved`. Later answers replace earlier ones, so name fields so that they do not collide
unless they are meant to. Read only what an answer before, `initialState` or `output` has set: all
else is undefined. Branches see the state of the moment when they began. After a
`map`, only its `output` (the list of results) and the keys of `merge` are kept; after a `parallel`
all keys are, and a key that two branches set differently needs `merge`. `append` needs a list in
`initialState`."""

_GRAPH = """\
`moderator: {graph: [{from: $START, transitions: [{to: ROLE, condition: …}, {to: $END}]}, …]}`: one
entry for `$START` and for each role. The transitions are tried in their order; the last has no
condition. Every role can be reached, and can reach `$END`. Conditions are JSONata over the answer
just given (`meta`), the number of steps (`depth`) and the steps before it
(`history[role = "writer"].meta`). A way back needs a bound, as `depth < 8` or
`$count(history[role = "writer"]) < 4`."""


def _top_keys() -> list[str]:
    known = dict.fromkeys([*FLOW_KEYS, *GRAPH_KEYS])
    return [key for key in TOP if key in known]


def _describe_nodes() -> list[str]:
    kinds = {
        kind: f"{KINDS[kind]}: " + ", ".join(key for key in keys if key not in _OF_ALL)
        for kind, keys in KEYS.items()
    }
    used = dict.fromkeys(key for keys in KEYS.values() for key in keys)
    words = {
        key: NODE[key] + (f": {' or '.join(CHOICES[key])}" if key in CHOICES else "")
        for key in NODE
        if key in used
    }
    return [
        f"Each has `type`; all may have {_quoted(key for key in _OF_ALL if key != 'type')}.",
        _list(kinds),
        "What the keys hold:",
        _list(words),
    ]


_OF_ALL = [key for key in KEYS["agent"] if all(key in keys for keys in KEYS.values())]


def _describe_javascript() -> str:
    operators = [*PRECEDENCE, "&&", "||", "??", "? :", "!", "?."]
    return (
        f"Names: {_quoted(NAMES)}, and the item of a map. `iteration` counts the passes done.\n"
        f"Operators: {_quoted(operators)}.\nMethods: {_quoted(METHODS)}.\n"
        "Also `.length`, `[i]`, `Array.isArray(x)`, `Object.keys(x)`, texts in quotes, lists in\n"
        "brackets, and functions as `x => x.ok` within a method. There is nothing else: no\n"
        "regular expressions, no objects, no assignment, no other functions."
    )


def _list(words: Mapping[str, str]) -> str:
    return "\n".join(f"- `{key}`: {text}" for key, text in words.items())


def _compare(examples: Iterable[Example]) -> str:
    rows = [f"- not `{each.wrong}` but `{each.right}`" for each in examples]
    return "\n".join(rows)


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
