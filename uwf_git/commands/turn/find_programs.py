"""Look for the programs of agents before a thread is made; nothing runs."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.agents.command_line import (
    ProgramMissing,
    build_search_path,
    resolve_program,
    split_command,
)
from uwf_git.commands.turn.agent_words import PERSON
from uwf_git.errors import Refused
from uwf_git.project_paths import find_above


class MissingProgram(NamedTuple):
    """A program that cannot be started here, and the roles that it would play."""

    roles: tuple[str, ...]
    error: ProgramMissing


def agent_missing(missing: MissingProgram) -> Refused:
    """Say that the program of an agent cannot be started here, and the thread is to run now."""
    return Refused(
        f"no thread was made: {missing.error.message}; it would play {', '.join(missing.roles)}",
        code="agent-missing",
        hint=missing.error.hint,
        roles=list(missing.roles),
        **missing.error.facts,
    )


def find_missing_programs(
    agents: Mapping[str, dict[str, Any]], environ: Mapping[str, str], workdir: str
) -> list[MissingProgram]:
    """Return the programs of *agents*, by role, that a step in *workdir* would not find."""
    missing: dict[str, MissingProgram] = {}
    for role, agent in agents.items():
        error = _find_problem(agent, environ, workdir)
        if error is not None:
            before = missing[error.message].roles if error.message in missing else ()
            missing[error.message] = MissingProgram((*before, role), error)
    return list(missing.values())


def _find_problem(
    agent: dict[str, Any], environ: Mapping[str, str], workdir: str
) -> ProgramMissing | None:
    command = agent["command"]
    if command.strip() == PERSON:
        return None
    own: dict[str, str] = agent.get("env", {})
    path = build_search_path(own.get("PATH", environ.get("PATH", os.defpath)))
    try:
        program = find_above(split_command(command), workdir=workdir)[0]
        resolve_program(program, path=path, workdir=workdir)
    except ProgramMissing as error:
        return error
    return None
