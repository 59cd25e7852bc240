"""An agent may leave its meta in the file that its role names; an older file is never believed."""

import subprocess
from typing import Any

import pytest
from commands.at_work import HANG, LONGEST_S, RESULT, newest_attempt
from commands.world import World
from refusing import raising

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.runs import refuse_inside
from uwf_git.commands.inspect.context import get_context, render_prompt
from uwf_git.commands.step.record_turn import TurnFailed, TurnInterrupted
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.local_files import get_run_dir, lock_drive

GRAPH = """
name: reporting
initialState: {file: .state/status.json}
roles:
  writer:
    outputSchema: {type: object, required: [text], properties: {text: {type: string}}}
    outputFile: FILE
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: $END}
"""
FLOW = GRAPH[: GRAPH.index("moderator:")] + "root: {type: agent, agentId: writer}\n"
LEAVES = """mkdir -p .state; echo '{"text": "left"}' >.state/status.json; echo prose"""

interrupt = raising(KeyboardInterrupt())


def begin(
    world: World, agent: str, *, file: str = ".state/status.json", source: str = GRAPH
) -> ThreadId:
    return world.begun(source.replace("FILE", file), world.program(agent))


def run(world: World, thread: ThreadId) -> dict[str, Any]:
    """Take a step, and return its StepNode, with the content as text."""
    world.step(thread, agent_player(None))
    snapshot = world.snapshot(thread)
    step = dict(snapshot.get_head_node().payload)
    world.assert_whole()
    return step | {"content": snapshot.get_node(step["content"]["$ref"]).payload}


def failure(world: World, thread: ThreadId) -> TurnFailed:
    failed = world.fail(thread, agent_player(None))
    world.assert_whole()
    return failed


@pytest.mark.parametrize("source", [GRAPH, FLOW], ids=["graph", "flow"])
@pytest.mark.parametrize("file", [".state/status.json", "${state.file}"], ids=["text", "template"])
def test_meta_is_what_the_file_has_and_the_text_what_was_printed(
    world: World, source: str, file: str
) -> None:
    step = run(world, begin(world, LEAVES, file=file, source=source))
    assert (step["meta"], step["content"], step["rung"]) == ({"text": "left"}, "prose", "file")


def test_report_of_an_earlier_try_is_never_believed(world: World) -> None:
    thread = begin(world, f"test -e again && exit 0; touch again; {LEAVES}; exit 1")
    assert failure(world, thread).facts["kind"] == "exited"
    assert (world.place / ".state" / "status.json").exists()
    empty = failure(world, thread)
    assert empty.facts["kind"] == "empty"
    assert "it left no .state/status.json, and the agent printed nothing" in empty.message
    assert not (world.place / ".state" / "status.json").exists()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"text": 1}', "its outputFile .state/status.json: meta.text"),
        ("{", "its outputFile .state/status.json: is not JSON"),
        ("\\377", "its outputFile .state/status.json: is not UTF-8"),
    ],
)
def test_file_that_does_not_fit_is_told_if_no_answer_does(
    world: World, content: str, problem: str
) -> None:
    writes = f"mkdir -p .state; printf '{content}' >.state/status.json"
    failed = failure(world, begin(world, f"{writes}; echo prose"))
    assert failed.facts["kind"] == "output-file"
    assert problem in failed.message
    answers = f"""{writes}; echo '{{"meta": {{"text": "said"}}}}'"""
    assert run(world, begin(world, answers))["meta"] == {"text": "said"}


@pytest.mark.parametrize(
    ("kind", "script"),
    [
        ("output-file", "{}"),
        ("interrupted", f"end() {{{{ {{}}; exit 0; }}}}; trap end TERM; echo began >&2; {HANG}"),
    ],
)
def test_answer_that_fits_no_more_than_its_file_has_cost_what_it_says(
    world: World, kind: str, script: str
) -> None:
    misfit = """mkdir -p .state; echo '{"text": 1}' >.state/status.json; """
    answers = misfit + """echo '{"meta": {"text": 1}, "usage": {"tokens": 7}}'"""
    thread = begin(world, script.format(answers))

    assert world.fail(thread, agent_player(interrupt)).facts["kind"] == kind
    assert newest_attempt(world, thread)["usage"] == {"tokens": 7}


def test_link_large_file_and_pipe_are_not_read(world: World) -> None:
    (world.place / "real").write_text('{"text": "x"}')
    for makes in ("ln -s ../real F", "mkfifo F", "head -c 2000000 /dev/zero >F", "mkdir F"):
        thread = begin(
            world, f"mkdir -p .state; {makes.replace('F', '.state/status.json')}; echo x"
        )
        assert failure(world, thread).facts["kind"] == "output-file"
        path = world.place / ".state" / "status.json"
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.parametrize("file", ["${state.bad}", "${state.none}", "${1}"])
def test_path_that_leads_out_fails_before_the_agent_is_paid(world: World, file: str) -> None:
    (world.place.parent / "victim").write_text("mine")
    thread = begin(world, f"touch paid; {LEAVES}", file=file)
    world.patch(thread, {"bad": "../victim"})
    assert failure(world, thread).facts["kind"] == "output-file-unusable"
    assert not (world.place / "paid").exists()
    assert (world.place.parent / "victim").read_text() == "mine"


def test_link_that_leads_out_fails_before_the_agent_is_paid(world: World) -> None:
    elsewhere = world.place.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "status.json").write_text("mine")
    (world.place / ".state").symlink_to(elsewhere)
    thread = begin(world, f"touch paid; {LEAVES}")
    assert failure(world, thread).facts["kind"] == "output-file-unusable"
    assert not (world.place / "paid").exists()
    assert (elsewhere / "status.json").read_text() == "mine"


def test_secrets_in_the_file_are_masked(world: World) -> None:
    environ = {**world.caller.environ, "API_TOKEN": "a-very-secret-value-123"}
    world.caller = world.caller._replace(environ=environ)
    says = """mkdir -p .state; printf '{"text": "%s"}' "$API_TOKEN" >.state/status.json"""
    assert run(world, begin(world, says))["meta"] == {"text": "[masked]"}


def test_agent_is_told_where_to_leave_it(world: World) -> None:
    context = get_context(world.store, begin(world, LEAVES, file="${state.file}"))
    assert context["role"]["outputFile"] == ".state/status.json"
    assert "into .state/status.json, a file of the work directory" in render_prompt(context)


# An agent that stays open is ended for what it has left in its file, if it may be ended.

STAYS = f"echo run >>runs; {LEAVES}; exec sleep 60"


class EngineDied(BaseException):
    """The engine is killed after its agent has finished."""


def test_agent_that_stays_open_is_ended_for_its_report(world: World) -> None:
    thread = begin(world, STAYS)

    world.step(thread, lambda turn: agent_player(None)(turn._replace(may_end=lambda: True)))

    step = world.snapshot(thread).get_head_node().payload
    assert (step["meta"], step["rung"]) == ({"text": "left"}, "file")
    world.assert_whole()
    assert not get_run_dir(world.store, thread, world.snapshot(thread).commit.parents[0]).read(
        "report"
    )


def test_without_a_report_that_fits_the_agent_is_left_alone(world: World) -> None:
    asked: list[bool] = []

    def may_end() -> bool:
        asked.append(True)
        if len(asked) > 2:
            (world.place / "go").touch()
        return True

    misfit = """echo '{"text": 1}' >.state/status.json"""
    waits = "until [ -e go ]; do sleep 0.01; done"
    thread = begin(world, f"""{misfit}; {waits}; echo '{{"meta": {{"text": "said"}}}}'""")

    world.step(thread, lambda turn: agent_player(None)(turn._replace(may_end=may_end)))

    assert world.snapshot(thread).get_head_node().payload["meta"] == {"text": "said"}


def test_ctrl_c_while_it_is_ended_keeps_the_report(world: World) -> None:
    thread = begin(world, STAYS)
    with pytest.raises(TurnInterrupted, match="interrupted"):
        world.step(
            thread, lambda turn: agent_player(interrupt)(turn._replace(may_end=lambda: True))
        )
    assert world.snapshot(thread).record.event == "start"

    # An ordinary step takes it up.
    world.step(thread, agent_player(None))

    assert world.snapshot(thread).get_head_node().payload["meta"] == {"text": "left"}
    assert (world.place / "runs").read_text() == "run\n"


def test_engine_that_dies_while_it_ends_the_agent_leaves_it_to_the_next(world: World) -> None:
    thread = begin(world, f"echo run >>runs; {LEAVES}; kill -TERM $$")

    def play(turn: Turn) -> Played:
        agent_player(None)(turn)
        turn.run_dir.write("report", '{"text": "kept"}')
        raise EngineDied

    with pytest.raises(EngineDied):
        world.step(thread, play)

    world.step(thread, agent_player(None))

    assert world.snapshot(thread).get_head_node().payload["meta"] == {"text": "kept"}
    assert (world.place / "runs").read_text() == "run\n"


# An agent does not wait for its own thread: real processes, since a lock names its holder.

OTHER = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def run_agent(world: World, script: str) -> str:
    """Take a step whose agent runs *script*; return what that wrote to standard error."""
    thread = world.start(
        world.program(f"({script}) 2>said\n{RESULT}"), workflow=world.put().workflow
    )
    engine = world.process("thread", "step", thread)
    try:
        _out, err = engine.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        world.process("thread", "kill", thread).communicate()
        raise
    assert engine.returncode == 0, err.decode()
    return (world.place / "said").read_text()


def test_agent_that_waits_for_its_own_thread_is_refused(world: World) -> None:
    said = run_agent(
        world, 'uwf thread wait "$UWF_THREAD_ID"; uwf thread logs --follow "$UWF_THREAD_ID"'
    )

    assert said.count("waits for the agent that runs this command") == 2


def test_others_may_wait(world: World, thread: ThreadId) -> None:
    # At rest: there is nothing to wait for.
    refuse_inside(world.store, thread, {"UWF_THREAD_ID": thread})
    with lock_drive(world.store, thread, since_ms=0):
        refuse_inside(world.store, thread, {})
        # This process holds the lock itself: its other thread of Python may wait.
        refuse_inside(world.store, thread, {"UWF_THREAD_ID": OTHER})
