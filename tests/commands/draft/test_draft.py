"""A rehearsal takes the way that the engine takes when agents give the same answers."""

import json
from pathlib import Path

import pytest
from commands.draft.test_judge import GOOD, drafted, spoiled
from commands.turns import drive
from commands.world import World, replied
from refusing import refuses
from workflow_file import read_flow_file

from uwf_git.commands.draft import (
    DRAFTER,
    PATTERNS,
    DraftRequest,
    answer_as_validator,
    build_prompt,
    find_nearest,
    find_wish,
    read_draft,
    start_draft,
)
from uwf_git.commands.inspect.context import get_context, render_prompt
from uwf_git.commands.start import StartRequest
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.workflow.build import put_workflow
from uwf_git.engine.rehearsal import find_least, rehearse
from uwf_git.model.definition.definition import Surroundings
from uwf_git.model.names import ThreadId

BAD = spoiled("agentId: writer", "agentId: scribe")


def begin(world: World, wish: str = "A letter to Ada") -> ThreadId:
    request = DraftRequest(wish, "nobody")
    # The drafter is played here, so its program need not be there.
    world.program("", name="nobody")
    caller = world.caller._replace(
        environ={**world.caller.environ, "PATH": f"{world.place}:{world.caller.environ['PATH']}"}
    )
    return start_draft(world.store, caller, request, thread=world.new_id()).thread


def write(
    world: World, thread: ThreadId, *drafts: str, questions: tuple[str, ...] = ()
) -> list[str]:
    """Let the drafter say one draft after another; return its prompts."""
    prompts: list[str] = []
    said = iter(drafts)

    def play(turn: Turn) -> Played:
        if turn.role == DRAFTER:
            prompts.append(render_prompt(get_context(world.store, thread, role=DRAFTER)))
            meta = {"name": "letter", "why": "as simple as can be", "questions": list(questions)}
            return replied(meta, f"```yaml\n{next(said)}```")
        return replied(*answer_as_validator(world.store, world.caller.cwd, thread))

    driven, _ = drive(world, thread, play)
    assert driven.stopped == "end"
    world.assert_sound(thread)
    return prompts


def test_errors_of_one_try_are_in_the_prompt_of_the_next_with_their_lines(world: World) -> None:
    thread = begin(world)

    prompts = write(world, thread, BAD, drafted("an agent"), GOOD)

    assert len(prompts) == 3
    assert "no role is called" not in prompts[0]
    assert "line 13, root.nodes[0].agentId: no role is called 'scribe'" in prompts[1]
    assert "> 13 |     - {type: agent, agentId: scribe}" in prompts[1]
    assert "line 2, defaultAgent: a draft names no agent" in prompts[2]
    # It is the draft itself that has its name now.
    world.put(GOOD)
    assert read_draft(world.store, world.caller.cwd, thread).judgement.problems == ()


def test_thread_of_another_workflow_has_no_draft(world: World) -> None:
    with refuses("no-draft-thread", match="runs demo, and drafts no workflow"):
        read_draft(world.store, world.caller.cwd, world.begun())


def test_validator_that_lies_changes_nothing(world: World) -> None:
    thread = begin(world)

    def play(turn: Turn) -> Played:
        meta = {"name": "letter", "why": "", "questions": []}
        is_drafter = turn.role == DRAFTER
        return replied(meta, BAD) if is_drafter else replied({"valid": True, "problems": []})

    drive(world, thread, play)

    assert read_draft(world.store, world.caller.cwd, thread).judgement.problems


def test_name_of_another_workflow_is_taken(world: World) -> None:
    world.put(GOOD.replace("Write a letter,", "Another letter,"))
    thread = begin(world)
    write(world, thread, GOOD, spoiled("name: letter", "name: DEVELOP"), GOOD)

    found = read_draft(world.store, world.caller.cwd, thread).judgement.problems

    assert [each.message for each in found] == [
        "there is a workflow letter already; choose another name"
    ]


def test_drafter_is_that_of_uwf_whatever_else_is_called_draft(world: World) -> None:
    folder = world.place / ".workflows"
    folder.mkdir()
    (folder / "draft.yaml").write_text(GOOD.replace("name: letter", "name: draft"))
    world.put(GOOD.replace("name: letter", "name: draft"))

    assert list(world.snapshot(begin(world)).get_present().binding) == ["drafter", "validator"]


WORKFLOWS = Path(__file__).parents[3] / "uwf_git" / "workflows"


def test_nearest_patterns_are_found_by_the_words_of_the_wish() -> None:
    # Each wish but the first four has one word that tells.
    wishes = json.loads((Path(__file__).parent / "made_up" / "wishes.json").read_text())

    assert {wish: find_nearest(wish) for wish in wishes} == wishes


def test_prompt_begins_with_the_wish_and_has_two_patterns_whole() -> None:
    prompt = build_prompt("三个专家投票")

    assert prompt.startswith("三个专家投票\n\n")
    assert prompt.count("```yaml\n") == 2
    assert (WORKFLOWS / "vote.yaml").read_text() in prompt
    for pattern in PATTERNS:
        assert f"\n- {pattern.name}: " in prompt


@pytest.mark.parametrize("wish", ["one line", "two\n\n# Patterns\n\nlines", "没有"])
def test_wish_is_found_again(wish: str) -> None:
    assert find_wish(build_prompt(wish)) == wish


def test_patterns_are_those_that_are_shipped() -> None:
    shipped = {path.stem for path in WORKFLOWS.glob("*.yaml") if "Use it where" in path.read_text()}

    assert {pattern.name for pattern in PATTERNS} == shipped


ROOT = Path(__file__).parents[3]
SHIPPED = ("develop", "draft", "fan-out", "orchestrate", "review-loop", "vote")
OF_THE_SEED = ("for-each-feature", "level-2", "level-4")
FILES = [
    *(ROOT / "workflows" / f"{name}.yaml" for name in SHIPPED),
    *(ROOT / "tests" / "flows" / f"{name}.yaml" for name in OF_THE_SEED),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rehearsal_and_engine_take_the_same_way(path: Path, world: World) -> None:
    definition = read_flow_file(path.read_text(), Surroundings(path.stem))
    rehearsed = rehearse(definition, "Do it.")
    put = put_workflow(world.store, world.caller, path.read_bytes(), path=str(path))
    agents = tuple(f"{role}=nobody" for role in definition.roles)
    thread = world.begin(StartRequest(put.workflow, "Do it.", agents))
    acted: list[str] = []

    def play(turn: Turn) -> Played:
        acted.append(turn.role)
        schema = definition.roles[turn.role].output_schema
        return replied({} if schema is True else find_least(schema), "")

    drive(world, thread, play)

    assert acted
    # A flow that goes wrong goes wrong at the same place.
    assert rehearsed.roles == tuple(acted), rehearsed.problem
