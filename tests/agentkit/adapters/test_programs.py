"""What each adapter calls for a question, and what it reads from a run, as written down.

`made_up/` holds the questions and ends that nobody can record; `recorded/` holds real runs.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agentkit.adapters.replay import (
    list_situations,
    make_question,
    read_made_up,
    replay,
    replay_made_up,
)
from agentkit.adapters.telling import tell_answer

from uwf_git.agentkit.adapters import codex
from uwf_git.agentkit.adapters.claude import CLAUDE, QWEN
from uwf_git.agentkit.adapters.cli import AIDER, CLI, HERMES
from uwf_git.agentkit.adapters.events import COPILOT, GEMINI, OPENCODE
from uwf_git.agentkit.adapters.untried import CURSOR, GOOSE
from uwf_git.agentkit.programs.command import CommandAdapter
from uwf_git.agentkit.turn import AskFailed
from uwf_git.agents.nested import allowed_environment
from uwf_git.errors import BadUsage

PROGRAMS = (
    AIDER,
    CLAUDE,
    CLI,
    codex.ADAPTER,
    COPILOT,
    CURSOR,
    GEMINI,
    GOOSE,
    HERMES,
    OPENCODE,
    QWEN,
)
"""The adapters of programs that are driven by their command lines."""

ADAPTERS = {adapter.name: adapter for adapter in PROGRAMS}

Golden = Callable[[str, str], None]

MARKS = {
    "QWEN_CODE": "1",
    "QWEN_CODE_SESSION_ID": "1",
    "QWEN_CODE_NO_RELAUNCH": "1",
    "QWEN_CODE_CLI": "1",
    "QWEN_HOME": "its own",
    "HERMES_YOLO_MODE": "1",
    "HERMES_SESSION_ID": "1",
    "HERMES_REAL_HOME": "1",
    "HERMES_HOME": "its own",
    "COPILOT_LOADER_PID": "1",
    "COPILOT_CLI_BINARY_VERSION": "1",
    "COPILOT_CLI": "1",
    "COPILOT_PROVIDER_BASE_URL": "its own",
}
"""Variables by which programs know one that runs around them, and such as people set."""


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=ADAPTERS.keys())
def test_calls_are_built_as_ever(adapter: CommandAdapter, tmp_path: Path, golden: Golden) -> None:
    told = [f"usage of a session that begins anew: {adapter.anew}\n"]
    told += [f"sessions go on: {adapter.resumes}\n"]
    told += [f"variables: {' '.join(adapter.environ)}\n"]
    told += [f"of marks: {' '.join(sorted(allowed_environment(MARKS, more=adapter.environ)))}\n"]
    for number, (case, given) in enumerate(read_made_up(adapter.name, "calls").items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        told += ["\n", f"{case}\n", *tell_call(adapter, given, folder)]

    golden(f"programs/{adapter.name}.calls.txt", "".join(told))


def tell_call(adapter: CommandAdapter, given: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Tell what is called, with all that differs from run to run named."""
    try:
        call = adapter.build(make_question(**given), str(folder))
    except (BadUsage, AskFailed) as refused:
        yield f"    refused: {refused.message}\n"
        return
    left = {path.name: path.read_text() for path in sorted(folder.iterdir())}
    parts = {"argv": call.argv, "given": call.given, "environ": dict(call.environ)}
    for name, part in {**parts, **left}.items():
        text = json.dumps(part, ensure_ascii=False)
        text = text.replace(str(folder), "FOLDER").replace(sys.executable, "PYTHON")
        yield f"    {name}: {re.sub('uwf-[0-9a-f]{16}', 'uwf-RANDOM', text)}\n"


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=ADAPTERS.keys())
def test_runs_are_read_as_ever(adapter: CommandAdapter, tmp_path: Path, golden: Golden) -> None:
    ends = {
        situation: replay(make_folder(tmp_path, situation), adapter.name, situation)
        for situation in list_situations(adapter.name)
    } | {
        case: replay_made_up(make_folder(tmp_path, f"case {number}"), adapter.name, given)
        for number, (case, given) in enumerate(read_made_up(adapter.name, "ends").items())
    }

    told = []
    for case, ended in ends.items():
        told += [f"{case}\n", *tell_answer(partial(adapter.judge, ended))]
    golden(f"programs/{adapter.name}.runs.txt", "".join(told))


def make_folder(place: Path, name: str) -> Path:
    folder = place / name
    folder.mkdir()
    return folder


def test_no_repository_is_made_where_there_is_none(tmp_path: Path) -> None:
    inner = tmp_path / "project" / "src"
    inner.mkdir(parents=True)
    question = make_question(workdir=str(inner))
    assert "--no-git" in AIDER.build(question, str(tmp_path)).argv

    (tmp_path / "project" / ".git").mkdir()

    assert "--no-git" not in AIDER.build(question, str(tmp_path)).argv


def test_what_no_argument_holds_is_asked_for_in_words_or_refused_before_anything_runs() -> None:
    long = make_question(schema={"description": "x" * 100_000})
    assert "--json-schema" not in CLAUDE.build(long, "/step").argv
    HERMES.build(make_question(prompt="x" * 131_061), "/step")

    with pytest.raises(AskFailed) as caught:
        HERMES.build(make_question(prompt="é" * 66_000), "/step")

    assert caught.value.kind == "too-long"
    assert "uwf-acp" in str(caught.value.hint)


def test_every_session_of_goose_has_a_name_of_its_own_and_is_known_by_it(tmp_path: Path) -> None:
    names = [GOOSE.build(make_question(), str(tmp_path)).argv[6] for _ in range(3)]
    given = read_made_up("goose", "ends")["pieces without a name belong together"]

    answer = GOOSE.parse(replay_made_up(tmp_path, "goose", given))

    assert len({*names}) == 3
    assert answer.session == names[-1]
