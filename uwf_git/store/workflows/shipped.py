"""The workflows of the installed package, which are found by name after all others."""

from pathlib import Path
from typing import Any, NamedTuple

from uwf_git.model.workflow import describe_check

_FOLDER = Path(__file__).parents[2] / "workflows"
_SUFFIX = ".yaml"


class ShippedFile(NamedTuple):
    """A workflow file of the package."""

    name: str
    path: str
    root: str
    """The folder of the file."""


def list_shipped() -> list[ShippedFile]:
    """List the shipped workflow files by name."""
    paths = sorted(_FOLDER.glob(f"*{_SUFFIX}"))
    return [ShippedFile(path.stem, str(path), str(_FOLDER)) for path in paths]


def find_shipped(name: str) -> ShippedFile | None:
    """Return the shipped file of the workflow *name*, or None."""
    return next((file for file in list_shipped() if file.name == name), None)


def is_shipped_agent(name: str, agent: dict[str, Any]) -> bool:
    """Check whether the installed file of the workflow *name* names *agent*, or has it as a check.

    *agent* is an AgentConfig payload. One of an older file no longer counts once another version
    of uwf is installed.
    """
    file = find_shipped(name)
    if file is None:
        return False
    # Reading YAML costs 70 ms of start-up, which few threads need.
    from uwf_git.model.definition.source import read_definition  # noqa: PLC0415 (see above)
    from uwf_git.model.yaml.reader import parse_yaml  # noqa: PLC0415 (see above)

    definition = read_definition(
        parse_yaml(Path(file.path).read_bytes()),
        # A test checks the shipped files.
        check_condition=lambda _condition: None,
        check_schema=lambda _schema: [],
    )
    default = definition.default_agent
    named = [*definition.agent_overrides.values(), *([] if default is None else [default])]
    checks = [describe_check(each) for role in definition.roles.values() for each in role.checks]
    return agent in checks or any(each.as_payload() == agent for each in named)
