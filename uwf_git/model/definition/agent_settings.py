"""Agent settings that are typed: a JSON merge patch (RFC 7396) of an AgentConfig payload.

A setting that is not named stays as it is, and null removes one. Source: seed 001 (``env`` and
``timeout`` of an agent); the rules of the fields are those of a workflow file (agents.py).
"""

from collections.abc import Sequence
from typing import Any

from uwf_git.errors import Refused
from uwf_git.model.definition.agents import read_agent
from uwf_git.model.definition.findings import Findings, InvalidWorkflow
from uwf_git.model.problem import Problem
from uwf_git.model.yaml.bad_yaml import BadYaml
from uwf_git.model.yaml.document import YamlDocument
from uwf_git.model.yaml.include import IncludedNotJson, json_as_yaml
from uwf_git.model.yaml.reader import parse_yaml

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
    """Read a command, or the settings of an agent, from YAML or JSON; *name* is for errors.

    Raises:
        Refused: it is not YAML, or has problems; the error lists all of them.
    """
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
