"""A valid workflow file for tests, ways to break it, and the problems that are then found.

The checks are the real ones, of JSONata and of JSON Schema.
"""

import pytest

from uwf_git.engine.expression import check_condition
from uwf_git.engine.rehearsal import list_reads
from uwf_git.model.definition.definition import (
    Definition,
    InvalidWorkflow,
    Surroundings,
    UsedWorkflow,
)
from uwf_git.model.definition.source import read_definition
from uwf_git.model.schema_check import check_schema
from uwf_git.model.workflow import build_workflow
from uwf_git.model.yaml_reader import parse_yaml

SOUND = """\
name: demo
roles:
  writer:
    systemPrompt: Write.
  checker:
    outputSchema: {type: object, properties: {ok: {type: boolean}}}
moderator:
  graph:
    - from: $START
      transitions:
        - to: writer
    - from: writer
      transitions:
        - to: checker
    - from: checker
      transitions:
        - to: writer
          condition: meta.ok = false
        - to: $END
"""

Found = tuple[int | None, str, str]
"""A problem's line, path and message."""


def spoiled(old: str, new: str) -> str:
    """Return the sound file with *old*, which it has once, replaced by *new*."""
    assert SOUND.count(old) == 1, f"{old!r} is there {SOUND.count(old)} times"
    return SOUND.replace(old, new)


def read(text: str) -> Definition:
    """Read a file that has no problem."""
    return read_flow_file(text, Surroundings(list_reads=list_reads))


def read_flow_file(text: str, surroundings: Surroundings | None = None) -> Definition:
    """Read a file that has no problem, with what is outside of it."""
    return read_definition(
        parse_yaml(text),
        check_condition=check_condition,
        check_schema=check_schema,
        surroundings=surroundings,
    )


def used(text: str, around: Surroundings | None = None) -> UsedWorkflow:
    node, closure = build_workflow(read_flow_file(text, around), timestamp=0)
    return UsedWorkflow(node.hash, [node, *closure])


def problems_of(text: str, surroundings: Surroundings | None = None) -> list[Found]:
    """Read a file that has problems, and return them."""
    with pytest.raises(InvalidWorkflow) as caught:
        read_flow_file(text, surroundings)
    return [(each.line, each.path, each.message) for each in caught.value.problems]
