"""Agents in a workflow file, and settings of agents that are typed."""

import re
import shlex
from collections.abc import Sequence
from typing import Any

from uwf_git.errors import Refused
from uwf_git.model.definition.definition import AgentSpec
from uwf_git.model.definition.findings import (
    DocumentPath,
    Findings,
    InvalidWorkflow,
    shown,
    suggestion,
    yaml_kind,
)
from uwf_git.model.problem import Problem
from uwf_git.model.yaml.include import BadYaml, IncludedNotJson, YamlDocument, json_as_yaml
from uwf_git.model.yaml.reader import parse_yaml

# Agents in a workflow file: ``defaultAgent`` and ``agentOverrides``.
#
# A setting whose name looks secret is refused, since a definition is kept for ever and pushed.

_KEYS = ("command", "protocol", "timeout", "retries", "backoff", "env")
_PROTOCOLS = ("positional", "flags")

# Longer ones overflow the system calls that wait.
_LONGEST_TIMEOUT_S = 365 * 24 * 3600

# The longest wait between two attempts (commands/turn/choose_agent.py).
_LONGEST_BACKOFF_S = 3600

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# KEY and TOKEN only as words or at a word's end: TOKENIZERS_PARALLELISM and MAX_TOKENS are plain.
_SECRET = re.compile(
    r"SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|AUTHORIZATION|BEARER"
    r"|(?:KEYS?|TOKEN)(?:_|$)|_(?:PASS|PWD|PAT)$",
    re.IGNORECASE,
)
_SET_BY_UWF = frozenset(
    f"UWF_{name}"
    for name in (
        *("REPO", "THREAD_ID", "ROLE", "HEAD", "ATTEMPT", "WORKFLOW", "TRACE", "STEP_DIR"),
        "REPLY",
    )
)


def read_agent(findings: Findings, path: DocumentPath, value: Any) -> AgentSpec | None:
    """Read an agent: a command, or a mapping with a command; None if it is neither."""
    if isinstance(value, str):
        command = read_command(findings, path, value)
        return None if command is None else AgentSpec(command)
    if not isinstance(value, dict):
        findings.add(path, f"must be a command or a mapping with one, not {yaml_kind(value)}")
        return None
    fields = findings.read_fields(path, value, _KEYS) or {}
    if "command" not in fields:
        findings.add(path, "'command' is missing")
        return None
    command = read_command(findings, (*path, "command"), fields["command"])
    agent = AgentSpec(
        command=command or "",
        protocol=_read_protocol(findings, path, fields),
        timeout=_read_timeout(findings, path, fields),
        retries=_read_retries(findings, path, fields),
        backoff=_read_backoff(findings, path, fields),
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


def _read_timeout(findings: Findings, path: DocumentPath, fields: dict[str, Any]) -> float | None:
    timeout = fields.get("timeout")
    is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if timeout is None or (is_number and 0 < timeout <= _LONGEST_TIMEOUT_S):
        return timeout
    findings.add((*path, "timeout"), "must be a number of seconds, above 0 and at most a year")
    return None


def _read_retries(findings: Findings, path: DocumentPath, fields: dict[str, Any]) -> int | None:
    retries = fields.get("retries")
    is_integer = isinstance(retries, int) and not isinstance(retries, bool)
    if retries is None or (is_integer and retries >= 0):
        return retries
    findings.add((*path, "retries"), "must be a whole number, 0 or more")
    return None


def _read_backoff(findings: Findings, path: DocumentPath, fields: dict[str, Any]) -> float | None:
    backoff = fields.get("backoff")
    is_number = isinstance(backoff, int | float) and not isinstance(backoff, bool)
    if backoff is None or (is_number and 0 <= backoff <= _LONGEST_BACKOFF_S):
        return backoff
    findings.add((*path, "backoff"), "must be a number of seconds, 0 or more, at most an hour")
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
# ``timeout`` of an agent); the rules of the fields are those of a workflow file (agents.py).

# Any command does: it stands where none is named, since only the other settings change.
_UNNAMED = "-"


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
    named = document.value if isinstance(document.value, dict) else {"command": ""}
    settings = dict(named)
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
        kept["command"] = _UNNAMED
    if isinstance(kept.get("env"), dict):
        kept["env"] = {name: text for name, text in kept["env"].items() if text is not None}
    return kept
