import copy
import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands.conftest import world
from commands.turns import drive
from commands.world import World, replied
from hypothesis import given
from hypothesis import strategies as st
from workflow_file import read
from workflows.pattern_runs import PATTERNS, RUNS, PatternRun

from uwf_git.commands.control.answer import PersonAnswer, answer_thread, read_question
from uwf_git.commands.drive_thread import Driven
from uwf_git.commands.start import StartRequest, start_thread
from uwf_git.commands.turn.flow import fill_input
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.engine.expression import evaluate_condition
from uwf_git.engine.flow_move import LoopExhausted
from uwf_git.engine.moderator import Position, StepSummary, build_context, next_role, plainly_holds
from uwf_git.model.definition.definition import Definition
from uwf_git.model.names import ThreadId
from uwf_git.model.workflow import END, START

__all__ = ["world"]

WORKFLOWS = Path(__file__).parents[2] / "workflows"


def begin(world: World, run: PatternRun) -> ThreadId:
    agents = [f"{role}=nobody" for role in run.script]
    request = StartRequest(run.pattern, "Do it.", tuple(agents))
    return start_thread(world.store, world.caller, request, thread=world.new_id()).thread


def go_on(world: World, thread: ThreadId, run: PatternRun) -> tuple[Driven, list[str]]:
    """Drive a thread by the script; a join is told by the name of its container."""
    script = copy.deepcopy(run.script)

    def play(turn: Turn) -> Played:
        turns = script[turn.role]
        said = turns.pop(0) if len(turns) > 1 else turns[0]
        return replied(said["meta"], said["content"])

    driven, steps = drive(world, thread, play)
    return driven, [step.partition(":")[0] for step in steps]


@pytest.mark.parametrize("run", RUNS, ids=[f"{run.pattern}-{len(run.steps)}" for run in RUNS])
def test_pattern_goes_the_way_that_the_answers_mean(run: PatternRun, world: World) -> None:
    thread = begin(world, run)

    driven, steps = go_on(world, thread, run)

    assert (driven.stopped, steps) == (run.stopped, run.steps)
    world.assert_sound(thread)


def the(pattern: str) -> PatternRun:
    return next(run for run in RUNS if run.pattern == pattern)


@pytest.mark.parametrize(
    ("votes", "decision"),
    [((True, True, True), "yes"), ((True, False, True), "yes"), ((True, False, False), "no")],
)
def test_majority_decides(votes: tuple[bool, ...], decision: str, world: World) -> None:
    run = the("vote")
    voters = dict(zip(("first", "second", "third"), votes, strict=True))
    told: list[str] = []

    def play(turn: Turn) -> Played:
        if turn.role in voters:
            return replied({"yes": voters[turn.role], "reason": f"because of {turn.role}"})
        assert turn.place is not None
        told.append(fill_input(turn.snapshot, turn.present, turn.place))
        return replied({})

    thread = begin(world, run)
    drive(world, thread, play)

    assert len(told) == 1
    assert f"The decision is {decision}." in told[0]
    assert all(f"because of {name}" in told[0] for name in voters)


def test_nothing_is_carried_out_before_a_person_approves(world: World) -> None:
    run = the("approve")
    thread = begin(world, run)
    go_on(world, thread, run)

    answer(world, thread, {"approved": False, "remarks": "too much"})
    driven, steps = go_on(world, thread, run)
    assert (driven.stopped, steps) == ("waiting", ["planner", "person"])
    answer(world, thread, {"approved": True})
    driven, steps = go_on(world, thread, run)

    assert (driven.stopped, steps) == ("end", ["executor"])


def answer(world: World, thread: ThreadId, meta: dict[str, object]) -> None:
    question = read_question(world.store, world.caller, thread)
    answer_thread(world.store, world.caller, question, PersonAnswer(meta))


def test_work_that_is_never_done_stops_for_a_person(world: World) -> None:
    never = PatternRun(
        "until-done",
        {"worker": [{"meta": {"notes": "x"}, "content": ""}]}
        | {"checker": [{"meta": {"ok": False}, "content": ""}]},
        [],
    )
    thread = begin(world, never)

    with pytest.raises(LoopExhausted, match="made 20 passes"):
        go_on(world, thread, never)

    assert world.snapshot(thread).get_present().depth == 40


@pytest.mark.parametrize("name", PATTERNS)
def test_pattern_is_short_and_tells_how_to_begin(name: str) -> None:
    text = (WORKFLOWS / f"{name}.yaml").read_text()

    assert text.startswith(f"# {name}: ")
    assert f"#   uwf run {name} -p " in text
    assert "# Use it where " in text
    assert len(text.splitlines()) <= 80


NAMES = sorted(path.stem for path in WORKFLOWS.glob("*.yaml"))


# Tables of transitions; the others are containers, tried in test_patterns.py.
@pytest.mark.parametrize("role", ["survey", "sources", "leftovers"])
def test_check_of_a_checkout_runs_none_of_its_files(tmp_path: Path, role: str) -> None:
    """It is run without trust, on the checkouts of strangers."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name in ("json", "os", "re", "subprocess", "collections", "sys", "warnings", "xml"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')\n")
    command = yaml.safe_load((WORKFLOWS / "check-repo.yaml").read_text())["agentOverrides"][role]

    subprocess.run(
        ["sh", "-c", shlex.split(command)[1]],
        cwd=tmp_path,
        env={**os.environ, "UWF_META": str(tmp_path / "meta")},
        check=True,
    )

    assert "ok" in json.loads((tmp_path / "meta").read_text())
    assert not (tmp_path / "ran").exists()


GRAPHS = ["check-repo", "code-review", "develop", "route", "solve-issue"]
# Played by whatever agent comes along; other workflows may bring agents that they rely on.
TEMPLATES = ["code-review", "develop", "solve-issue"]

# Longer than any walk that ends by itself; the longest template has nine steps.
MOST_STEPS = 30

Play = Callable[[str], Mapping[str, Any]]
"""From a role to the meta of its step."""


@cache
def template(name: str) -> Definition:
    return read((WORKFLOWS / f"{name}.yaml").read_text(encoding="utf-8"))


def role_after(definition: Definition, steps: list[StepSummary]) -> str:
    last = steps[-1] if steps else StepSummary(START, {})
    position = Position(last.role, last.meta, len(steps), {}, "do it", 0, 0)
    context = build_context(position, lambda: steps[:-1])
    return next_role(
        definition.graph, last.role, lambda condition: evaluate_condition(condition, context)
    )


def walk(definition: Definition, play: Play) -> list[str]:
    """List the roles that a thread goes through when *play* plays all of them."""
    steps: list[StepSummary] = []
    while len(steps) <= MOST_STEPS:
        to = role_after(definition, steps)
        if to == END:
            return [step.role for step in steps]
        steps.append(StepSummary(to, play(to)))
    pytest.fail(f"no end after {[step.role for step in steps]}")


def schema_of(definition: Definition, role: str) -> dict[str, Any]:
    schema = definition.roles[role].output_schema
    assert isinstance(schema, dict)
    return schema


def test_file_has_no_problem_and_bears_its_own_name() -> None:
    for name in NAMES:
        assert template(name).name == name


@pytest.mark.parametrize("name", GRAPHS)
def test_conditions_that_read_no_history_are_plain(name: str) -> None:
    ways = [way for ways in template(name).graph.values() for way in ways]
    conditions = {way.condition for way in ways if way.condition is not None}

    for condition in conditions:
        if "history" not in condition:
            plainly_holds(condition, {"meta": {}})


@pytest.mark.parametrize("name", TEMPLATES)
@given(st.data())
def test_walk_ends_whatever_the_roles_say(name: str, data: st.DataObject) -> None:
    values: st.SearchStrategy[Any] = st.sampled_from(
        [None, True, False, 0, 1, "", "text", [], ["text"], {}]
    )
    definition = template(name)

    def play(role: str) -> Mapping[str, Any]:
        fields = sorted(schema_of(definition, role).get("properties", {}))
        optional = dict.fromkeys(fields, values)
        return data.draw(st.fixed_dictionaries({}, optional=optional))

    assert walk(definition, play)


@pytest.mark.parametrize("name", GRAPHS)
def test_conditions_ask_only_for_fields_that_the_role_hands_in(name: str) -> None:
    definition = template(name)
    for source, ways in definition.graph.items():
        for condition in filter(None, (way.condition for way in ways)):
            earlier = re.findall(r'role = "([^"]+)"\]\.meta\.(\w+)', condition)
            own = re.findall(r"(?<!\.)\bmeta\.(\w+)", condition)
            for role, asked in [*earlier, *((source, each) for each in own)]:
                assert asked in schema_of(definition, role).get("properties", {}), condition


@pytest.mark.parametrize("name", TEMPLATES)
def test_prompt_of_every_role_says_what_to_do_and_what_not(name: str) -> None:
    for role in template(name).roles.values():
        assert role.description, role.name
        assert role.extract_prompt, role.name
        for part in ("You ", "Do:", "Do not:", "Report"):
            assert part in role.system_prompt, f"{role.name}: {part}"


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_field_of_the_result_is_described_and_required_ones_exist(name: str) -> None:
    definition = template(name)
    for role in definition.roles:
        schema = schema_of(definition, role)
        assert all(field.get("description") for field in schema["properties"].values()), role
        assert set(schema["required"]) <= set(schema["properties"]), role


@pytest.mark.parametrize("name", TEMPLATES)
def test_agents_are_left_to_the_configuration(name: str) -> None:
    assert template(name).default_agent is None
    assert not template(name).agent_overrides


def plays(**metas: dict[str, Any]) -> Play:
    return lambda role: metas.get(role, {})


ROUND = ["developer", "reviewer"]


@pytest.mark.parametrize(
    ("name", "play", "roles"),
    [
        ("develop", plays(reviewer={"approved": True}), ["planner", *ROUND]),
        ("develop", plays(reviewer={"approved": False}), ["planner", *ROUND * 4]),
        ("develop", plays(planner={"needsClarification": []}), ["planner", *ROUND * 4]),
        ("develop", plays(planner={"needsClarification": ["which one?"]}), ["planner"]),
        ("solve-issue", plays(), ["preparer"]),
        (
            "solve-issue",
            plays(preparer={"ready": True}, reviewer={"approved": True}),
            ["preparer", "planner", *ROUND, "submitter"],
        ),
        (
            "solve-issue",
            plays(preparer={"ready": True}, reviewer={"approved": False}),
            ["preparer", "planner", *ROUND * 3],
        ),
        (
            "solve-issue",
            plays(preparer={"ready": True}, planner={"needsClarification": ["which one?"]}),
            ["preparer", "planner"],
        ),
        ("code-review", plays(surveyor={"hasChanges": False}), ["surveyor"]),
        (
            "code-review",
            plays(surveyor={"securityRelevant": True}),
            ["surveyor", "correctness", "security", "maintainability", "verdict"],
        ),
        (
            "code-review",
            plays(surveyor={"securityRelevant": False}),
            ["surveyor", "correctness", "maintainability", "verdict"],
        ),
    ],
)
def test_template_takes_the_way_that_its_comments_promise(
    name: str, play: Play, roles: list[str]
) -> None:
    assert walk(template(name), play) == roles
