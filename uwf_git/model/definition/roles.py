"""Roles in a workflow file: what is under ``roles``, and the defaults."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from uwf_git.errors import Problem, Refused
from uwf_git.model.definition.definition import (
    AgentSpec,
    CheckText,
    DocumentPath,
    Findings,
    FindUsed,
    FlowText,
    InvalidWorkflow,
    RoleDefinition,
    UsedWorkflow,
    find_contained,
    not_checked,
    shown,
    suggestion,
    yaml_kind,
)
from uwf_git.model.flow import MAX_NESTING
from uwf_git.model.limits import LONGEST_MS
from uwf_git.model.names import check_path_below, fold, is_node_hash
from uwf_git.model.workflow import END, START
from uwf_git.model.workflow_name import check_name
from uwf_git.model.yaml_reader import (
    BadYaml,
    IncludedNotJson,
    YamlDocument,
    json_as_yaml,
    parse_yaml,
)

# Agents in a workflow file: ``defaultAgent`` and ``agentOverrides``.
#
# A setting whose name looks secret is refused, since a definition is kept for ever and pushed.

_PROTOCOLS = ("positional", "flags")

# The longest wait between two attempts (commands/turn/choose_agent.py).
_LONGEST_BACKOFF_S = 3600

_NUMBERS: Mapping[str, tuple[Callable[[float], bool], str]] = {
    "timeout": (
        lambda seconds: 0 < seconds <= LONGEST_MS // 1000,
        "a number of seconds, above 0 and at most a year",
    ),
    "retries": (lambda number: number >= 0, "a whole number, 0 or more"),
    "backoff": (
        lambda seconds: 0 <= seconds <= _LONGEST_BACKOFF_S,
        "a number of seconds, 0 or more, at most an hour",
    ),
}

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# KEY and TOKEN only as words or at a word's end: TOKENIZERS_PARALLELISM and MAX_TOKENS are plain.
_SECRET = re.compile(
    r"SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|AUTHORIZATION|BEARER"
    r"|(?:KEYS?|TOKEN)(?:_|$)|_(?:PASS|PWD|PAT)$",
    re.IGNORECASE,
)
_OWN = ("REPO", "THREAD_ID", "ROLE", "HEAD", "ATTEMPT", "WORKFLOW", "TRACE", "STEP_DIR", "REPLY")
_SET_BY_UWF = frozenset(f"UWF_{name}" for name in _OWN)


def read_agent(findings: Findings, path: DocumentPath, value: Any) -> AgentSpec | None:
    """Read an agent: a command, or a mapping with a command; None if it is neither."""
    if isinstance(value, str):
        command = read_command(findings, path, value)
        return None if command is None else AgentSpec(command)
    if not isinstance(value, dict):
        findings.add(path, f"must be a command or a mapping with one, not {yaml_kind(value)}")
        return None
    fields = findings.read_fields(path, value, AgentSpec._fields) or {}
    if "command" not in fields:
        findings.add(path, "'command' is missing")
        return None
    command = read_command(findings, (*path, "command"), fields["command"])
    agent = AgentSpec(
        command=command or "",
        protocol=_read_protocol(findings, path, fields),
        **{key: _read_number(findings, path, fields, key) for key in _NUMBERS},
        env=_read_env(findings, path, fields),
    )
    return None if command is None else agent


def read_overrides(findings: Findings, value: Any, *, roles: Sequence[str]) -> dict[str, AgentSpec]:
    """Read ``agentOverrides``: an agent by role."""
    path = ("agentOverrides",)
    if value is None:
        return {}
    if not isinstance(value, dict):
        findings.add(path, f"must be a mapping from roles to agents, not {yaml_kind(value)}")
        return {}
    agents: dict[str, AgentSpec] = {}
    known = frozenset(roles)
    for role, content in value.items():
        if known and role not in known:
            message = f"no role is called {shown(role)}; {suggestion(role, roles)}"
            findings.add((*path, role), message)
        agent = read_agent(findings, (*path, role), content)
        if agent:
            agents[role] = agent
    return agents


def read_command(findings: Findings, path: DocumentPath, value: Any) -> str | None:
    text = findings.read_text(path, value)
    if text is None:
        return None
    # A quoted script is written as a block; its last line break belongs to YAML.
    command = text.rstrip("\n")
    problem = _command_problem(command)
    if problem:
        findings.add(path, problem)
        return None
    return command


def _command_problem(command: str) -> str | None:
    if not command.strip():
        return "the command is empty"
    if command != command.strip():
        return "the command starts or ends with a blank"
    control = _CONTROL.search(command)
    if control:
        return f"the command has the control character U+{ord(control[0]):04X} in it"
    try:
        words = shlex.split(command)
    except ValueError as error:
        return f"the command cannot be split into words: {str(error).lower()}"
    if not words or not words[0]:
        return "the command names no program"
    return None


def _read_protocol(findings: Findings, path: DocumentPath, fields: dict[str, Any]) -> str | None:
    protocol = findings.read_optional_text(path, fields, "protocol")
    if protocol is not None and protocol not in _PROTOCOLS:
        findings.add(
            (*path, "protocol"),
            f"no protocol is called {shown(protocol)}; {suggestion(protocol, _PROTOCOLS)}",
        )
    return protocol


def _read_number(findings: Findings, path: DocumentPath, fields: dict[str, Any], key: str) -> Any:
    value, kinds = fields.get(key), int if key == "retries" else int | float
    is_right, told = _NUMBERS[key]
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    if value is None or (is_number and is_right(value)):
        return value
    findings.add((*path, key), f"must be {told}")
    return None


def _read_env(
    findings: Findings, path: DocumentPath, fields: dict[str, Any]
) -> dict[str, str] | None:
    path = (*path, "env")
    settings = fields.get("env")
    if settings is None:
        return None
    if not isinstance(settings, dict):
        findings.add(path, f"must be a mapping from names to text, not {yaml_kind(settings)}")
        return None
    for name, value in settings.items():
        problem = _setting_problem(name, value)
        if problem:
            findings.add((*path, name), problem)
        else:
            findings.read_text((*path, name), value)
    return settings


def _setting_problem(name: str, value: Any) -> str | None:
    if not _SETTING.fullmatch(name):
        return f"{shown(name)} cannot be the name of an environment variable"
    if _SECRET.search(name):
        return f"{name} looks secret; leave it in the environment, which agents inherit"
    if name in _SET_BY_UWF:
        return f"{name} is set by uwf itself"
    if isinstance(value, str) and "\0" in value:
        return f"{name} has a NUL character in its value"
    return None


# Agent settings that are typed: a JSON merge patch (RFC 7396) of an AgentConfig payload.
#
# A setting that is not named stays as it is, and null removes one. Source: seed 001 (``env`` and
# ``timeout`` of an agent); the rules of the fields are those of a workflow file.


def _bad_agent(source: str, problems: Sequence[Problem]) -> Refused:
    first = problems[0]
    where = f"{first.path}: " if first.path else ""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return Refused(
        f"{source} is no agent: {where}{first.message}{more}",
        code="bad-agent",
        hint='write a command, or settings such as {"command": "uwf-claude", "protocol": '
        '"flags", "timeout": 60, "env": {"LANG": "C"}}',
        source=source,
        problems=[problem.as_document() for problem in problems],
    )


def read_agent_settings(source: bytes | str, *, name: str) -> dict[str, Any]:
    """Read a command, or the settings of an agent, from YAML or JSON; *name* is for errors."""
    try:
        document = parse_yaml(_as_yaml(source))
    except BadYaml as error:
        raise _bad_agent(name, [Problem("", error.message)]) from None
    findings = Findings(document)
    agent = read_agent(findings, (), _without_removals(findings, document))
    try:
        findings.raise_if_any()
    except InvalidWorkflow as error:
        raise _bad_agent(name, error.problems) from None
    settings = dict(document.value if isinstance(document.value, dict) else {"command": ""})
    if agent is not None and "command" in settings:
        settings["command"] = agent.command
    return settings


def _as_yaml(source: bytes | str) -> bytes | str:
    """Return *source*; if it is JSON, in the words of YAML, which has no surrogate pairs."""
    content = source if isinstance(source, bytes) else source.encode(errors="surrogatepass")
    try:
        return json_as_yaml(content)
    except IncludedNotJson:
        return source


def _without_removals(findings: Findings, document: YamlDocument) -> Any:
    """Return the settings without those that are null, as ``read_agent`` takes them."""
    value = document.value
    if not isinstance(value, dict):
        return value
    if value.get("command", "") is None:
        findings.add(("command",), "an agent needs a command, so null cannot remove it")
    kept = dict(value)
    if kept.get("command") is None:
        # Any command does, since only the other settings change.
        kept["command"] = "-"
    if isinstance(kept.get("env"), dict):
        kept["env"] = {name: text for name, text in kept["env"].items() if text is not None}
    return kept


CheckSchema = Callable[[Any], list[Problem]]

SENTINELS = {
    **dict.fromkeys((START, "__START__", "__start__"), START),
    **dict.fromkeys((END, "__END__", "__end__"), END),
}
"""Every spelling of the two ends of a graph (seeds 000, 001, 003), and the stored spelling."""

_OF_AGENT = ("systemPrompt", "extractPrompt", "checks", "outputFile", "inputFiles")
MOST_CHECKS = 20

ROLE_KEYS = ("name", "description", *_OF_AGENT, "outputSchema", "schema", "workflow")

_OPEN = {"$ref", "$dynamicRef", "patternProperties", "if", "dependentSchemas"}


class RolesFile(NamedTuple):
    name: str = ""

    find_used: FindUsed | None = None
    """Finds a workflow that plays a role; None: in a flow, a node does that."""

    check_text: CheckText = not_checked
    language: str = "javascript"


def read_roles(
    findings: Findings, value: Any, check_schema: CheckSchema, file: RolesFile
) -> dict[str, RoleDefinition]:
    """Read what is under ``roles``; a role with a problem is left out and reported."""
    path = ("roles",)
    if value is None or value == {}:
        findings.add(path, "a workflow needs at least one role")
        return {}
    if not isinstance(value, dict):
        findings.add(path, f"must be a mapping from names to roles, not {yaml_kind(value)}")
        return {}
    roles: dict[str, RoleDefinition] = {}
    for name, content in value.items():
        _check_role_name(findings, (*path, name), name)
        role = _read_role(findings, name, content, check_schema=check_schema, file=file)
        if role:
            roles[name] = role
    return roles


def _check_role_name(findings: Findings, path: DocumentPath, name: str) -> None:
    if name in SENTINELS:
        findings.add(path, f"{name} is an end of the graph and cannot be a role")
        return
    problem = check_name(name)
    if problem:
        findings.add(path, f"{shown(name)} cannot be a role's name: {problem}")
    elif name in ("start", "end"):
        findings.warn(
            path, f"a picture shows {name} of the graph alike; give the role another name"
        )


def _read_role(
    findings: Findings, name: str, content: Any, *, check_schema: CheckSchema, file: RolesFile
) -> RoleDefinition | None:
    path = ("roles", name)
    if isinstance(content, dict) and "$ref" in content:
        findings.add((*path, "$ref"), "a file cannot refer to the store; write the role out here")
        return None
    # A role may be only its name: all of its fields have a default.
    fields = findings.read_fields(path, {} if content is None else content, ROLE_KEYS)
    if fields is None:
        return None
    given = findings.read_optional_text(path, fields, "name")
    if given is not None and given != name:
        findings.add((*path, "name"), f"the role is called {shown(name)} here, not {shown(given)}")
    used = _find_used(findings, path, fields, file)
    return RoleDefinition(
        name=name,
        description=findings.read_optional_text(path, fields, "description") or "",
        system_prompt=findings.read_optional_text(path, fields, "systemPrompt") or "",
        extract_prompt=findings.read_optional_text(path, fields, "extractPrompt"),
        output_schema=_read_schema(findings, path, content or {}, check_schema=check_schema),
        workflow=None if used is None else used.hash,
        used=() if used is None else used.nodes,
        checks=_read_checks(findings, (*path, "checks"), fields.get("checks")),
        output_file=_read_path(findings, (*path, "outputFile"), fields.get("outputFile"), file),
        input_files=_read_paths(findings, (*path, "inputFiles"), fields.get("inputFiles"), file),
    )


def _read_path(findings: Findings, path: DocumentPath, value: Any, file: RolesFile) -> str | None:
    """Read a template for a path below the work directory."""
    text = None if value is None and path[-1] == "outputFile" else findings.read_text(path, value)
    if text is None:
        return None
    if "${" in text:
        problem = file.check_text(FlowText("template", text, file.language))
    else:
        problem = check_path_below(text)
    if problem is not None:
        findings.add(path, problem)
    return text


def _read_paths(
    findings: Findings, path: DocumentPath, value: Any, file: RolesFile
) -> tuple[str, ...]:
    if value is None:
        return ()
    paths = findings.read_list(path, value, "paths or patterns")
    read = [_read_path(findings, (*path, n), each, file) for n, each in enumerate(paths)]
    return tuple(each for each in read if each is not None)


def _read_checks(findings: Findings, path: DocumentPath, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    commands = findings.read_list(path, value, "commands")
    if len(commands) > MOST_CHECKS:
        findings.add(path, f"has {len(commands)} commands, of at most {MOST_CHECKS}")
    read = [read_command(findings, (*path, index), each) for index, each in enumerate(commands)]
    return tuple(each for each in read if each is not None)


def _find_used(
    findings: Findings, path: DocumentPath, fields: dict[str, Any], file: RolesFile
) -> UsedWorkflow | None:
    named = findings.read_optional_text(path, fields, "workflow")
    if named is None:
        return None
    for key in _OF_AGENT:
        if key in fields:
            findings.add((*path, key), "is for an agent, and a workflow plays this role")
    path = (*path, "workflow")
    if file.find_used is None:
        findings.add(path, "in a flow a node of type workflow runs another workflow")
        return None
    found = find_contained(file.find_used, named, by=file.name)
    if isinstance(found, UsedWorkflow) and found.nesting() >= MAX_NESTING:
        found = f"more than {MAX_NESTING} threads would lie in one another"
    if isinstance(found, str):
        findings.add(path, found)
        return None
    return found


def _read_schema(
    findings: Findings, path: DocumentPath, content: dict[str, Any], *, check_schema: CheckSchema
) -> dict[str, Any] | bool:
    anything: dict[str, Any] = {"type": "object"}
    keys = [key for key in ("outputSchema", "schema") if key in content]
    if not keys:
        return anything
    if len(keys) > 1:
        findings.add((*path, "schema"), "outputSchema and schema mean the same; keep one of them")
    path = (*path, keys[0])
    schema = content[keys[0]]
    # An empty key is nearly always a schema that lost its indentation: no default.
    if not isinstance(schema, dict | bool):
        findings.add(path, f"must be a JSON Schema written out here, not {yaml_kind(schema)}")
        return anything
    if isinstance(schema, dict) and is_node_hash(fold(str(schema.get("$ref")))):
        findings.add((*path, "$ref"), "a file cannot refer to the store; write the schema here")
        return anything
    for problem in check_schema(schema):
        findings.add_below(path, problem)
    return schema


def list_fields(schema: Any) -> tuple[list[str], bool]:
    """List the fields of an answer that *schema* names, and say whether there may be others."""
    if not isinstance(schema, dict):
        return [], True
    # A schema with problems is read too.
    keys = ("allOf", "anyOf", "oneOf")
    lists = [schema[key] for key in keys if isinstance(schema.get(key), list)]
    # What a part does not name, the schema around it may.
    around: dict[str, Any] = {"properties": {}} if "properties" in schema else {}
    parts = [
        list_fields(around | part if isinstance(part, dict) else part)
        for each in lists
        for part in each
    ]
    own = [
        schema[key]
        for key in ("properties", "required")
        if isinstance(schema.get(key), dict | list)
    ]
    is_open = (
        not _OPEN.isdisjoint(schema)
        or schema.get("additionalProperties", False) is not False
        or schema.get("unevaluatedProperties", False) is not False
        or any(is_part_open for _, is_part_open in parts)
        or not ("properties" in schema or parts)
    )
    listed = [field for fields in (*own, *(each for each, _ in parts)) for field in fields]
    return list(dict.fromkeys(field for field in listed if isinstance(field, str))), is_open
