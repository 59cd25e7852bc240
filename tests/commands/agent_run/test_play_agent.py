"""Agent commands: their input, their failures, and the leftovers of a killed engine."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from commands.at_work import newest_attempt, wait_for, wait_until
from commands.world import DEMO, World
from fresh_store import fresh_store
from refusing import refuses

from uwf_git.agents.command_line import AgentRun
from uwf_git.commands.agent_run import play_agent
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.runs import forget_run
from uwf_git.commands.inspect.context import get_context
from uwf_git.commands.step.record_turn import TurnFailed, WorkKept
from uwf_git.commands.turn.turn import Played, ThreadResult, Turn
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.store.git.config import shared_umask
from uwf_git.store.threads.history import list_preserved, read_snapshot
from uwf_git.store.threads.local_files import has_runs

ANSWER = """echo '{"meta": {"text": "x", "ok": true}}'"""


def step(
    world: World, thread: ThreadId, *, log: list[bytes] | None = None, **said: Any
) -> ThreadResult:
    """Take a step by the agent's command."""
    return world.step(thread, agent_player(([] if log is None else log).append), **said)


def failure(world: World, script: str) -> TurnFailed:
    """Run an agent that fails, and check what every failure has in common."""
    thread = world.start(world.program(script), workflow=world.put().workflow)
    before = world.snapshot(thread)
    with pytest.raises(TurnFailed) as caught:
        step(world, thread)
    after = world.snapshot(thread)
    assert caught.value.exit_status == 3
    assert (after.record.event, after.record.status) == ("attempt", "failed")
    assert (after.record.node, after.record.depth) == (before.record.node, before.record.depth)
    assert get_context(world.store, thread)["lastError"]["kind"] == caught.value.facts["kind"]
    # The next one is on its own: nothing of the failure is taken up.
    world.retry(thread)
    assert step(world, thread, command=world.program(ANSWER, name="good")).depth == 1
    return caught.value


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        ("echo 'no key' >&2; exit 7", "exited", "exit status 7: no key"),
        (
            r"printf 'x\n^\nError: no plan\n    at f (x.js)\n\nNode.js v20.1.0\n' >&2; exit 1",
            "exited",
            "exit status 1: Error: no plan",
        ),
        ("exit 9", "exited", "exit status 9"),
        ("kill -9 $$", "exited", "signal 9 ended it"),
        ("kill -TERM $$", "exited", "signal 15 ended it"),
        ("echo hello", "no-json", "neither a JSON object nor text with front matter"),
        (":", "empty", "printed nothing"),
        ("echo '{\"meta\": '", "bad-json", "JSON"),
        ("echo '[1]'", "not-an-object", "not an object"),
        ("echo '{\"text\": 1}'", "schema", "meta.text: 1 is not of type 'string'"),
        ("echo '{\"txt\": 1}'", "no-meta", 'no "meta", only txt'),
        ('echo \'{"text": "x", "content": "c"}\'', "no-meta", 'no "meta", only content, text'),
        ('echo \'{"meta": {"text": 7}}\'', "schema", "meta.text: 7 is not of type 'string'"),
        (r"printf '\377\376\000'", "no-json", "neither"),
        ('echo \'{"meta": {"text": "\\ud800"}}\'', "bad-json", "surrogate"),
        ("head -c 17000000 /dev/zero", "too-much-output", "more than 16 MiB"),
    ],
)
def test_failure_names_what_was_wrong(script: str, kind: str, said: str, world: World) -> None:
    failed = failure(world, script)

    assert failed.facts["kind"] == kind
    assert said in failed.message
    assert len(failed.message) < 600


def test_argv_follows_the_protocol(world: World) -> None:
    script = 'env | grep ^UWF_ >seen; echo "$#" "$1" >>seen; pwd >>seen; wc -c <&0 >>seen\n'
    thread = world.start(world.program(script + ANSWER), workflow=world.put().workflow)
    record = world.snapshot(thread).record

    step(world, thread)

    seen = (world.place / "seen").read_text().splitlines()
    variables = dict(line.split("=", 1) for line in seen if line.startswith("UWF_"))
    files = [variables.pop("UWF_TRACE"), variables.pop("UWF_STEP_DIR")]
    assert variables == {
        "UWF_REPO": world.store.path,
        "UWF_THREAD_ID": thread,
        "UWF_ROLE": "writer",
        "UWF_HEAD": record.node,
        "UWF_ATTEMPT": "1",
        "UWF_WORKFLOW": record.workflow,
    }
    assert all(name.startswith(world.store.path) for name in files)
    assert seen[-3:] == [f"1 {thread}", str(world.place), "0"]


@pytest.mark.parametrize(("shared", "modes"), [("false", "700 600 600"), ("group", "770 660 660")])
def test_what_an_agent_leaves_unmasked_is_closed_to_others(
    world: World, shared: str, modes: str
) -> None:
    world.configure("core.sharedRepository", shared)
    run = '"$UWF_STEP_DIR" "${UWF_STEP_DIR%.files}.prints" "${UWF_STEP_DIR%.files}/stdout"'
    script = f"stat -c %a {run} >modes\n"
    thread = world.start(world.program(script + ANSWER), workflow=world.put().workflow)
    world.caller = world.caller._replace(environ={**world.caller.environ, "A_KEY": "s3cr3t-0"})

    with shared_umask(world.store.config):
        step(world, thread)

    assert (world.place / "modes").read_text().split() == modes.split()


def test_agent_with_flags_is_called_with_flags_and_prints_bare_meta(world: World) -> None:
    program = world.program("""echo "$@" >seen; echo '{"text": "bare"}'""")
    agent = json.dumps({"command": f"{program} --x", "protocol": "flags"})
    # Any object fits, so that the protocol alone tells what this one is.
    world.put(DEMO.replace(", required: [text]", "") + f"defaultAgent: {agent}\n")
    role_bound = world.start("checker=nobody")

    step(world, role_bound)

    assert (world.place / "seen").read_text() == f"--x -t {role_bound} -r writer\n"
    assert world.snapshot(role_bound).get_head_node().payload["meta"] == {"text": "bare"}


def test_object_that_fits_the_schema_alone_is_the_meta(world: World) -> None:
    program = world.program("""echo '{"text": "bare"}'""")
    loose = DEMO.replace(", required: [text]", "")
    thread = world.start(program, workflow=world.put().workflow)
    other = world.begun(loose, program)

    step(world, thread)
    with pytest.raises(TurnFailed) as caught:
        step(world, other)

    assert world.snapshot(thread).get_head_node().payload["meta"] == {"text": "bare"}
    assert caught.value.facts["kind"] == "no-meta"
    assert "its meta alone" in str(caught.value.hint)


def test_environment_of_an_agent_config_reaches_it(world: World) -> None:
    (world.place / "bin").mkdir()
    world.program("exec >&2; exit 1", name="uwf-x")
    world.program("""echo "$FOO" >seen; """ + ANSWER, name="bin/uwf-x")
    agent = {"command": "uwf-x", "env": {"FOO": "bar", "PATH": f"{world.place}/bin:/usr/bin:/bin"}}

    step(world, world.begun(DEMO + f"defaultAgent: {json.dumps(agent)}\n", "checker=nobody"))

    assert (world.place / "seen").read_text() == "bar\n"


def test_agent_that_takes_too_long_is_stopped(world: World) -> None:
    program = world.program("sleep 60")
    world.put(DEMO + f"defaultAgent: {{command: {program}, timeout: 0.1}}\n")
    thread = world.start("checker=nobody")

    with pytest.raises(TurnFailed, match="it exceeded its time limit") as caught:
        step(world, thread)

    assert caught.value.facts["kind"] == "timed-out"


@pytest.mark.parametrize(
    ("printed", "event"),
    [('{"meta": {"text": "x"}}', "step"), ('{"meta": {"text": 5}}', "attempt"), ("", "attempt")],
)
def test_whole_answer_counts_though_the_time_was_over(
    printed: str, event: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = AgentRun("timed-out", 0, printed.encode(), b"", 1, 2)
    monkeypatch.setattr(play_agent, "run_agent", lambda _request, _listener: run)
    thread = world.start(world.program(ANSWER), workflow=world.put().workflow)

    with suppress(TurnFailed):
        step(world, thread)

    assert world.snapshot(thread).record.event == event
    if event == "attempt":
        assert newest_attempt(world, thread)["error"]["kind"] == "timed-out"


def test_step_files_are_recorded_masked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        'echo "Use $LEFT_API_KEY" >"$UWF_STEP_DIR/prompt.md"; '
        'echo "{\\"type\\": \\"turn\\", \\"said\\": \\"$LEFT_API_KEY\\"}" >"$UWF_TRACE"; '
        'echo "{\\"meta\\": {\\"text\\": \\"$LEFT_API_KEY\\", \\"ok\\": true}}"'
    )
    monkeypatch.setitem(
        cast("dict[str, str]", world.caller.environ), "LEFT_API_KEY", "sk-0123456789"
    )
    thread = world.start(world.program(script), workflow=world.put().workflow)

    step(world, thread)

    snapshot = world.snapshot(thread)
    payload = snapshot.get_head_node().payload
    assert payload["meta"]["text"] == "[masked]"
    assert snapshot.get_node(payload["prompt"]["$ref"]).payload == "Use [masked]\n"
    events = snapshot.get_node(payload["trace"]["$ref"]).payload["events"]
    assert events == [{"type": "turn", "said": "[masked]"}]


def test_files_without_an_end_do_not_hold_up_the_step(world: World) -> None:
    # The daemon ends when its file's folder is removed.
    script = (
        'echo "{\\"type\\": \\"turn\\"}" >"$UWF_TRACE"; truncate -s 15T "$UWF_TRACE"; '
        'mkfifo "$UWF_STEP_DIR/prompt.md"; '
        'setsid sh -c \'echo $$ >daemon; while echo "{}" >>"$UWF_TRACE"; do :; done\' '
        ">/dev/null 2>&1 & "
    )
    thread = world.start(world.program(script + ANSWER), workflow=world.put().workflow)

    step(world, thread)

    snapshot = world.snapshot(thread)
    payload = snapshot.get_head_node().payload
    assert snapshot.get_node(payload["trace"]["$ref"]).payload == {
        "events": [{"type": "turn"}],
        "leftOut": 1,
    }
    assert "prompt" not in payload
    assert not has_runs(world.store, thread)
    daemon = int((world.place / "daemon").read_text())
    wait_until(lambda: not lives(daemon), "the daemon's files were not removed")


def test_failure_has_the_agents_own_kind_price_and_hint(world: World) -> None:
    script = (
        'echo "{\\"kind\\": \\"auth\\", \\"usage\\": {\\"turns\\": 2}}" '
        '>"$UWF_STEP_DIR/failure.json"; '
        'echo "error: log in first" >&2; echo "hint: fake login" >&2; exit 1'
    )

    failed = failure(world, script)

    assert failed.facts["kind"] == "auth"
    assert str(failed.hint).startswith("fake login; `uwf thread step ")
    assert failed.message.endswith("exit status 1: log in first")


TRACED = """echo '{"type": "turn", "usage": {"inputTokens": 5, "x": 1}}' >"$UWF_TRACE"; """


@pytest.mark.parametrize(
    ("script", "usage"),
    [
        (TRACED + "kill -9 $$", {"inputTokens": 5}),
        (TRACED + ANSWER, {"inputTokens": 5}),
        (
            TRACED + """echo '{"meta": {"text": "x"}, "usage": {"outputTokens": 2}}'""",
            {"outputTokens": 2},
        ),
        (TRACED + """echo '{"meta": {}, "usage": {"costUsd": "1", "turns": 3}}'""", {"turns": 3}),
        (
            TRACED + """echo '{"usage": {"costUsd": 2}}' >"$UWF_STEP_DIR/failure.json"; exit 1""",
            {"costUsd": 2},
        ),
        (
            TRACED + """echo '{"usage": {"costUsd": "2"}}' >"$UWF_STEP_DIR/failure.json"; exit 1""",
            {"inputTokens": 5},
        ),
        (
            TRACED + """echo '{"meta": {"text": "x"}, "usage": {"costUsd": "2"}}'""",
            {"inputTokens": 5},
        ),
    ],
)
def test_trace_tells_what_was_spent_if_nothing_else_does(
    script: str, usage: dict[str, Any], world: World
) -> None:
    thread = world.start(world.program(script), workflow=world.put().workflow)

    with suppress(TurnFailed):
        step(world, thread)

    assert world.snapshot(thread).get_present().usage == usage


def test_amount_that_does_not_count_is_told_and_the_others_count(world: World) -> None:
    left = '{"usage": {"inputTokens": 9, "costUsd": "0.5"}}'
    thread = world.start(
        world.program(f"""echo '{left}' >"$UWF_STEP_DIR/failure.json"; exit 1"""),
        workflow=world.put().workflow,
    )

    with pytest.raises(TurnFailed, match=r"exit status 1; in its usage costUsd is '0\.5', not a"):
        step(world, thread)

    assert world.snapshot(thread).get_present().usage == {"inputTokens": 9}


def test_agent_may_use_the_store_while_it_plays(world: World) -> None:
    puts = "uwf workflow put other.yaml >/dev/null"
    script = f'{puts} && uwf thread context "$UWF_THREAD_ID" >context\n{ANSWER}'
    (world.place / "other.yaml").write_text(DEMO.replace("name: demo", "name: other"))
    step(world, world.start(world.program(script), workflow=world.put().workflow))

    context = json.loads((world.place / "context").read_text())
    assert (context["role"]["name"], context["depth"]) == ("writer", 0)
    assert world.store.refs.find("refs/workflows/other")


def test_store_in_memory_runs_agents_too(clock: Any, thread_ids: Any, world: World) -> None:
    world.store = fresh_store()
    world.reopen()
    thread = world.start(world.program(ANSWER), workflow=world.put().workflow)

    assert step(world, thread).depth == 1
    forget_run(world.store, thread, world.tip(thread))


# An agent that says that it began, and goes on when the file `go` is there.
SLOW = f"""
echo $$ >>ran
until [ -e go ]; do sleep 0.02; done
{ANSWER}"""


@pytest.fixture
def slow(world: World) -> Iterator[ThreadId]:
    """Start a thread whose agent waits for the file `go`; end it afterwards."""
    yield world.start(world.program(SLOW), workflow=world.put().workflow)
    (world.place / "go").touch()


def kill_engine(engine: subprocess.Popen[bytes]) -> None:
    """End the engine as the kernel does when memory runs out."""
    with engine:
        engine.send_signal(signal.SIGKILL)
        engine.communicate()
    assert engine.returncode == -signal.SIGKILL


def kill_while_agent_runs(world: World, thread: ThreadId, *words: str) -> None:
    engine = world.process("thread", "step", thread, *words)
    wait_for(world.place / "ran")
    kill_engine(engine)
    assert world.snapshot(thread).record.event == "start"


def lives(group: int) -> bool:
    """Ask ps, which knows zombies from the living."""
    command = ["ps", "-A", "-o", "pgid=,stat="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    states = [line.split()[1] for line in listed.splitlines() if line.split()[0] == str(group)]
    return any(not state.startswith("Z") for state in states)


def runs(world: World) -> int:
    return len((world.place / "ran").read_text().splitlines())


def test_engine_killed_while_the_agent_runs_costs_no_second_run(
    world: World, slow: ThreadId
) -> None:
    kill_while_agent_runs(world, slow)

    next_engine = world.process("thread", "step", slow)
    assert next_engine.stderr is not None
    assert b"still at work; waiting" in next_engine.stderr.readline()
    (world.place / "go").touch()
    with next_engine:
        out, err = next_engine.communicate()

    assert (next_engine.returncode, err) == (0, b"")
    assert json.loads(out)["role"] == "writer"
    assert (runs(world), world.snapshot(slow).record.depth) == (1, 1)


def finish(world: World, thread: ThreadId) -> None:
    """Let the agent finish."""
    (world.place / "go").touch()
    run = Path(world.store.local_path("run", thread))
    wait_until(lambda: list(run.glob("*/exit")), "the agent never ended")


# An agent that tells its secrets everywhere, when the file `go` is there.
TELLS = r"""
echo began >>ran
until [ -e go ]; do sleep 0.02; done
echo "log: $MY_TOKEN" >&2
printf 'prompt: %s' "$MY_TOKEN" >"$UWF_STEP_DIR/prompt.md"
printf '{"type": "tool", "%s": 1}
' "$MY_TOKEN" >"$UWF_TRACE"
coded=$(printf 'me:%s' "$MY_TOKEN" | base64)
printf '{"meta": {"text": "x %s", "ok": true}, "content": "Basic %s", "state": {"%s": "%s"}}' \
    "$MY_TOKEN" "$coded" "$MY_TOKEN" 'a%2Fsecret%2Bvalue-0'
"""


def test_work_is_masked_by_what_its_agent_had_whoever_records_it(world: World) -> None:
    secret = "a/secret+value-0"
    thread = world.start(world.program(TELLS), workflow=world.put().workflow)
    engine = world.process("thread", "step", thread, env={"MY_TOKEN": secret})
    wait_for(world.place / "ran")
    kill_engine(engine)
    finish(world, thread)
    run = Path(world.store.local_path("run", thread))
    assert not any(secret in file.read_text() for file in run.glob("*.*") if file.is_file())

    assert step(world, thread).depth == 1

    node = world.snapshot(thread).get_head_node()
    assert node.payload["meta"] == {"text": "x [masked]", "ok": True}
    assert world.snapshot(thread).get_present().state == {"[masked]": "[masked]"}
    names = [NodeHash(node.payload[each]["$ref"]) for each in ("content", "prompt", "stderr")]
    texts = [world.snapshot(thread).get_node(name).payload for name in names]
    assert texts == ["Basic bWU6[masked]", "prompt: [masked]", "log: [masked]\n"]
    trace = world.snapshot(thread).get_node(NodeHash(node.payload["trace"]["$ref"])).payload
    assert trace["events"] == [{"type": "tool", "[masked]": 1}]


@pytest.mark.parametrize(
    "script",
    [
        # A message quotes the beginning of an output, of a line of the log, of a wrong value.
        "printf 'no %066d%s' 0 $MY_TOKEN",
        "printf 'no %0185d%s' 0 $MY_TOKEN >&2; exit 1",
        "printf 'no\\nhint: no %0185d%s' 0 $MY_TOKEN >&2; exit 1",
        'printf \'{"meta": {"text": ["no %0180d%s"]}}\' 0 $MY_TOKEN',
        # What is wrong is the line end, which is masked as well.
        """printf '{"meta": {"text": "no%038d%s\\n-%s"}}' 0 ${MY_TOKEN%%-*} ${MY_TOKEN#*-}""",
    ],
)
def test_message_quotes_no_half_of_a_secret(
    world: World, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    secret = "0123456789-secret-0123456789-secret-abcdefghij"
    monkeypatch.setitem(cast("dict[str, str]", world.caller.environ), "MY_TOKEN", secret)

    failed = failure(world, script)

    assert "no" in failed.message
    assert "1234" not in f"{failed.message} {failed.hint}"


def test_work_that_was_finished_after_the_engine_died_is_taken(
    world: World, slow: ThreadId
) -> None:
    kill_while_agent_runs(world, slow)
    finish(world, slow)

    assert step(world, slow).depth == 1
    assert runs(world) == 1


@pytest.fixture
def overtaken(world: World, slow: ThreadId) -> ThreadId:
    """Return a thread that moved while its orphaned agent finished."""
    ref, refs = f"refs/threads/{slow}", world.store.refs
    start = world.tip(slow)
    world.step(slow, command="mine")
    elsewhere = world.tip(slow)
    assert refs.delete(ref, seen=elsewhere)
    assert refs.create(ref, start)
    kill_while_agent_runs(world, slow)
    finish(world, slow)
    # Somebody pushes the same thread into this store, one step further.
    assert refs.advance(ref, seen=start, to=elsewhere)
    return slow


def test_work_that_a_push_overtook_while_its_engine_was_dead_is_kept_and_named(
    world: World, overtaken: ThreadId
) -> None:
    before = world.tip(overtaken)

    with pytest.raises(WorkKept) as caught:
        step(world, overtaken)

    assert world.tip(overtaken) == before
    (kept,) = list_preserved(world.store, overtaken)
    assert kept == caught.value.facts["commit"]
    payload = read_snapshot(world.store, kept).get_head_node().payload
    assert (payload["role"], payload["meta"]) == ("writer", {"text": "x", "ok": True})
    assert runs(world) == 1

    assert step(world, overtaken).role == "checker"
    assert runs(world) == 2


def test_work_that_a_push_overtook_is_kept_whichever_agent_is_named_now(
    world: World, overtaken: ThreadId
) -> None:
    with pytest.raises(WorkKept):
        step(world, overtaken, command="mine")

    (kept,) = list_preserved(world.store, overtaken)
    assert read_snapshot(world.store, kept).record.agent == "agent"
    assert runs(world) == 1


def test_engine_killed_before_the_commit_costs_no_second_run(world: World, slow: ThreadId) -> None:
    # Git holds the ref: the engine has the result, has written it, and cannot move on.
    lock = Path(world.store.path, "refs", "threads", f"{slow}.lock")
    lock.touch()
    engine = world.process("thread", "step", slow)
    finish(world, slow)
    markers = Path(world.store.local_path("ref-locks"))
    wait_until(lambda: list(markers.glob(f"*{slow}")), "the engine never came to the ref")
    kill_engine(engine)
    lock.unlink()
    assert world.snapshot(slow).record.event == "start"

    assert step(world, slow).depth == 1
    assert (runs(world), world.snapshot(slow).record.depth) == (1, 1)


def test_agent_that_died_with_its_engine_is_a_failed_try(world: World, slow: ThreadId) -> None:
    kill_while_agent_runs(world, slow)
    pid = next(Path(world.store.local_path("run", slow)).glob("*/pid")).read_text()
    os.killpg(int(pid), signal.SIGKILL)

    with pytest.raises(TurnFailed, match="it was killed before it reported an exit status"):
        step(world, slow)
    (world.place / "go").touch()
    assert step(world, slow).depth == 1
    assert runs(world) == 2


def test_other_agent_does_not_run_beside_one_that_still_works(world: World, slow: ThreadId) -> None:
    kill_while_agent_runs(world, slow)

    with refuses("other-agent-runs") as caught:
        step(world, slow, command=world.program(ANSWER, name="other"))

    assert caught.value.exit_status == 4
    assert caught.value.message.endswith("another agent at work: agent")


def test_finished_work_is_recorded_as_its_own_agent_s_though_another_is_named(
    world: World, slow: ThreadId
) -> None:
    kill_while_agent_runs(world, slow)
    finish(world, slow)

    other = world.program("""echo '{"meta": {"text": "the other"}}'""", name="other")
    step(world, slow, command=other)

    snapshot = world.snapshot(slow)
    assert (snapshot.record.role, snapshot.record.agent) == ("writer", "agent")
    assert snapshot.get_head_node().payload["meta"] == {"text": "x", "ok": True}
    assert runs(world) == 1
    world.assert_whole()


def test_interrupt_stops_the_agent_and_records_the_try(world: World, slow: ThreadId) -> None:
    with world.process("thread", "step", slow) as engine:
        wait_for(world.place / "ran")
        pid = next(Path(world.store.local_path("run", slow)).glob("*/pid")).read_text()
        engine.send_signal(signal.SIGINT)
        _, err = engine.communicate()

    assert engine.returncode == 130
    assert b"error: writer failed (agent): it was interrupted\n" in err
    assert world.snapshot(slow).record.event == "attempt"
    assert not lives(int(pid))


def test_four_engines_on_one_thread_run_one_agent(world: World, slow: ThreadId) -> None:
    engines = [world.process("thread", "step", slow) for _ in range(4)]
    wait_until(lambda: sum(each.poll() is not None for each in engines) == 3, "somebody waits")
    (world.place / "go").touch()

    told = []
    for engine in engines:
        with engine:
            _, err = engine.communicate()
        told.append((engine.returncode, err.decode()))

    assert sorted(status for status, _ in told) == [0, *[4] * 3]
    winner = next(each.pid for each in engines if each.returncode == 0)
    busy = [err for status, err in told if status == 4]
    assert all(f"thread {slow} is busy (pid {winner}, " in err for err in busy)
    assert (runs(world), world.snapshot(slow).record.depth) == (1, 1)


def test_four_threads_at_once_all_come_to_their_end(world: World) -> None:
    program = world.program(ANSWER)
    world.put()

    engines = [world.process("run", "demo", "-p", "x", "--agent", program) for _ in range(4)]
    ended = []
    for engine in engines:
        with engine:
            out, err = engine.communicate()
        assert engine.returncode == 0, err
        ended.append(json.loads(out))

    assert [(each["status"], each["steps"]) for each in ended] == [("completed", 2)] * 4
    assert len({each["thread"] for each in ended}) == 4


def test_engine_killed_after_the_commit_leaves_nothing_to_do_after_a_pause(world: World) -> None:
    """The step is recorded on top of the pause, so that its commit is not the run's own child."""
    thread = world.start(world.program(ANSWER), workflow=world.put().workflow)
    runs_of, saved = Path(world.store.local_path("run", thread)), world.place / "saved"
    play = agent_player(lambda _log: None)

    def play_and_pause(turn: Turn) -> Played:
        played = play(turn)
        shutil.copytree(runs_of, saved)
        world.pause(thread)
        return played

    world.step(thread, play_and_pause)
    # As it was before the engine could forget the run.
    shutil.copytree(saved, runs_of, dirs_exist_ok=True)
    world.resume(thread)

    assert step(world, thread).role == "checker"
    assert list_preserved(world.store, thread) == []
    assert not runs_of.exists()
