from commands.draft.test_judge import GOOD, HOSTILE, spoiled
from commands.flow_runs import assert_sound, drive
from commands.world import World, replied

from uwf_git.commands.draft import (
    DRAFTER,
    DraftRequest,
    answer_as_validator,
    read_draft,
    start_draft,
)
from uwf_git.commands.inspect.context import get_context, render_prompt
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.names import ThreadId

BAD = spoiled("agentId: writer", "agentId: scribe")
FALSE = spoiled("state.polite === false", "state.polite = false")


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
    assert_sound(world, thread)
    return prompts


def test_good_draft_needs_one_try(world: World) -> None:
    thread = begin(world)

    assert len(write(world, thread, GOOD)) == 1

    draft = read_draft(world.store, world.caller.cwd, thread)
    assert (draft.wish, draft.why) == ("A letter to Ada", "as simple as can be")
    assert (draft.judgement.source, draft.judgement.problems) == (GOOD, ())
    assert draft.judgement.name == "letter"


def test_errors_of_one_try_are_in_the_prompt_of_the_next_with_their_lines(world: World) -> None:
    thread = begin(world)

    prompts = write(world, thread, BAD, FALSE, GOOD)

    assert len(prompts) == 3
    assert "no role is called" not in prompts[0]
    assert "line 13, root.nodes[0].agentId: no role is called 'scribe'" in prompts[1]
    assert "> 13 |     - {type: agent, agentId: scribe}" in prompts[1]
    assert "line 11, root.condition: JavaScript compares with ===" in prompts[2]
    assert read_draft(world.store, world.caller.cwd, thread).judgement.problems == ()


def test_hostile_draft_is_told_its_line_and_refused(world: World) -> None:
    thread = begin(world)
    first, second, third = HOSTILE[0], HOSTILE[1], HOSTILE[4]

    prompts = write(world, thread, first[0], second[0], third[0])

    assert f"line {first[1]}, defaultAgent: a draft names no agent" in prompts[1]
    assert f"line {second[1]}, agentOverrides.writer: a draft may only bind a role" in prompts[2]
    assert read_draft(world.store, world.caller.cwd, thread).judgement.problems


def test_validator_that_lies_changes_nothing(world: World) -> None:
    thread = begin(world)

    def play(turn: Turn) -> Played:
        meta = {"name": "letter", "why": "", "questions": []}
        is_drafter = turn.role == DRAFTER
        return replied(meta, BAD) if is_drafter else replied({"valid": True, "problems": []})

    drive(world, thread, play)

    assert read_draft(world.store, world.caller.cwd, thread).judgement.problems


def test_questions_end_the_drafting(world: World) -> None:
    thread = begin(world)

    assert len(write(world, thread, "", GOOD, questions=("Which language?",))) == 1

    assert read_draft(world.store, world.caller.cwd, thread).questions == ("Which language?",)


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

    thread = begin(world)

    roles = world.snapshot(thread).get_present().binding
    assert list(roles) == ["drafter", "validator"]
