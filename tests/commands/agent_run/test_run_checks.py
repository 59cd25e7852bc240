"""The checks of a role decide whether an answer is recorded."""

import json

import pytest
from commands.at_work import newest_attempt
from commands.world import World
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agents.command_line import AgentReply, AgentRun, Listener, RunOutcome
from uwf_git.commands.agent_run import run_checks
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.run_checks import (
    Secrets,
    cut_to_lines,
    mask_played,
    mask_run,
    masked_listener,
    read_secrets,
    write_fingerprints,
)
from uwf_git.commands.inspect.context import get_context, render_prompt
from uwf_git.commands.start import StartRequest
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.turn import Played, StepFiles
from uwf_git.engine.masking import find_secrets, take_fingerprints
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.local_files import RunDir, get_run_dir

CHECKED = """
name: checked
roles:
  writer: {outputSchema: {type: object, required: [text]}, checks: [CHECKS]}
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: $END}
"""
FLOW = CHECKED[: CHECKED.index("moderator:")] + "root: {type: agent, agentId: writer}\n"
ANSWER = """printf '{"meta": {"text": "words"}, "content": "a text", "usage": {"tokens": 7}}'"""


def begin(world: World, *checks: str, agent: str = ANSWER, file: str = CHECKED) -> ThreadId:
    """Start a thread whose writer's answer is checked by *checks*."""
    listed = ", ".join(json.dumps(each) for each in checks)
    return world.begun(file.replace("CHECKS", listed), world.program(agent))


def run(world: World, thread: ThreadId) -> str:
    return world.step(thread, agent_player(None)).said


def failure(world: World, thread: ThreadId) -> TurnFailed:
    return world.fail(thread, agent_player(None))


@pytest.mark.parametrize("file", [CHECKED, FLOW], ids=["graph", "flow"])
def test_answer_is_recorded_if_every_check_succeeds(world: World, file: str) -> None:
    thread = begin(world, "sh -c 'cp \"$UWF_REPLY\" seen; echo fine'", "test -f seen", file=file)
    assert run(world, thread) == "a text"
    seen = json.loads((world.place / "seen").read_text())
    assert seen == {"role": "writer", "meta": {"text": "words"}, "content": "a text"}
    snapshot = world.snapshot(thread)
    log = snapshot.get_node(snapshot.get_head_node().payload["stderr"]["$ref"]).payload
    assert "fine\n\n$ test -f seen\n" in log
    world.assert_whole()


@pytest.mark.parametrize("file", [CHECKED, FLOW], ids=["graph", "flow"])
def test_check_that_fails_fails_the_attempt_with_its_last_line(world: World, file: str) -> None:
    checks = ("true", "sh -c 'echo one; echo two >&2; echo three; exit 9'", "touch never")
    thread = begin(world, *checks, agent=f"echo thinking >&2; {ANSWER}", file=file)
    failed = failure(world, thread)
    assert (failed.facts["kind"], failed.facts["status"]) == ("check", "failed")
    attempt = newest_attempt(world, thread)
    assert attempt["error"] == {"kind": "check", "message": "three"}
    assert attempt["exitCode"] == 9
    assert attempt["stderr"].startswith("thinking\n\n$ true\n\n$ sh -c")
    assert attempt["stderr"].endswith("\none\ntwo\nthree\n")
    assert '"text": "words"' in attempt["content"]
    assert attempt["usage"] == {"tokens": 7}
    assert not (world.place / "never").exists()
    world.assert_whole()


def test_next_try_is_told_what_the_check_printed(world: World) -> None:
    thread = begin(world, "sh -c 'echo line 3: no such role; echo 2 problems; exit 1'")
    failure(world, thread)
    context = get_context(world.store, thread)
    assert context["lastError"] == {
        "kind": "check",
        "message": "2 problems",
        "output": "line 3: no such role\n2 problems\n",
    }
    prompt = render_prompt(context)
    assert "<output>\nline 3: no such role\n2 problems\n</output>" in prompt
    assert "<checks>\nsh -c" in prompt


def test_agent_and_check_are_tied_to_no_repository_around_uwf(world: World) -> None:
    held = {"GIT_DIR": "/elsewhere", "GIT_INDEX_FILE": ".git/index", "GIT_CONFIG_COUNT": "0"}
    world.caller = world.caller._replace(environ={**world.caller.environ, **held})
    looks = '[ -z "$GIT_DIR$GIT_INDEX_FILE" ] && [ "$GIT_CONFIG_COUNT" = 0 ]'
    assert run(world, begin(world, f"sh -c '{looks}'", agent=f"{looks} && {ANSWER}")) == "a text"


def test_answer_that_does_not_fit_is_not_checked(world: World) -> None:
    thread = begin(world, "touch checked", agent="""printf '{"meta": {}}'""")
    assert failure(world, thread).facts["kind"] == "schema"
    assert not (world.place / "checked").exists()


def test_missing_program_of_a_check_fails_before_the_agent_is_paid(world: World) -> None:
    failed = failure(world, begin(world, "no-such-check --fast", agent=f"touch paid; {ANSWER}"))
    assert failed.facts["kind"] == "check-program-missing"
    assert "no-such-check" in failed.message
    assert not (world.place / "paid").exists()


def test_check_whose_work_directory_is_gone_fails_the_attempt(world: World) -> None:
    world.put(CHECKED.replace("CHECKS", "'true'"))
    (world.place / "part").mkdir()
    agent = world.program(f"rmdir ../part; {ANSWER}")
    request = StartRequest("checked", "x", (agent,), workdir=str(world.place / "part"))
    assert failure(world, world.begin(request)).facts["kind"] == "check"


def test_check_may_be_what_the_agent_makes(world: World) -> None:
    make = "printf '#!/bin/sh\\nexit 0\\n' > made; chmod +x made"
    assert run(world, begin(world, "./made", agent=f"{make}; {ANSWER}")) == "a text"


def test_check_has_the_time_of_the_agent(world: World) -> None:
    thread = begin(world, "sleep 60")
    agent = json.dumps({"command": world.program(ANSWER), "timeout": 0.5})
    failed = world.fail(thread, agent_player(None), agents=(agent,))
    assert "its check sleep exceeded its time limit" in failed.message
    world.assert_whole()


def test_check_that_the_thread_has_no_time_left_for_says_how_to_give_it_more(world: World) -> None:
    thread = begin(world, "sleep 60", file=f"{CHECKED}config: {{maxExecutionTime: 500}}\n")
    failed = failure(world, thread)
    assert "of execution time that the thread had left" in failed.message
    assert "--max-execution-time" in (failed.hint or "")


def test_answer_is_not_written_where_a_link_in_place_of_its_folder_leads(world: World) -> None:
    linked = f'rm -r "$UWF_STEP_DIR"; mkdir mine; ln -s "$PWD/mine" "$UWF_STEP_DIR"; {ANSWER}'
    assert run(world, begin(world, "sh -c 'test -f \"$UWF_REPLY\"'", agent=linked)) == "a text"
    assert list((world.place / "mine").iterdir()) == []


def test_secrets_in_the_output_of_a_check_are_masked(world: World) -> None:
    environ = {**world.caller.environ, "API_TOKEN": "a-very-secret-value-123"}
    world.caller = world.caller._replace(environ=environ)
    thread = begin(world, "sh -c 'echo $API_TOKEN; exit 1'")
    failure(world, thread)
    attempt = newest_attempt(world, thread)
    assert "very-secret" not in json.dumps(attempt)
    assert "very-secret" not in attempt["stderr"]


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("", {}),
        (" --key-env=MYCRED", {}),
        (' --key-env  "MYCRED"', {}),
        (" true", {"UWF_LLM_KEYENV": "MYCRED"}),
        (" UWF_LLM_KEYENV='MYCRED' uwf-llm", {}),
    ],
)
def test_key_that_a_setting_names_is_masked_whatever_its_name(
    words: str, more: dict[str, str], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This process knows the key: the slow search by fingerprints is for others.
    monkeypatch.delattr(run_checks, "find_secrets_in")
    # A variable that other variables name is a secret only if they name a key.
    others = {"SHOWN": "it is certainly", "SHOWS": "SHOWN"}
    environ = {**world.caller.environ, **others, "MYCRED": "plain-value-42", **more}
    world.caller = world.caller._replace(environ=environ)
    world.configure("uwf.recordEnv", "MYCRED")
    if not words:
        world.configure("uwf.llm.keyEnv", "MYCRED")
    program = world.program('echo "log $MYCRED" >&2; echo "{\\"text\\": \\"$SHOWN $MYCRED\\"}"')
    thread = world.begun(CHECKED.replace("CHECKS", "'sh -c \"echo $MYCRED >&2\"'"), program + words)
    live: list[bytes] = []

    world.step(thread, agent_player(live.append))

    snapshot = world.snapshot(thread)
    step = snapshot.get_head_node().payload
    log, env = (snapshot.get_node(step[name]["$ref"]).payload for name in ("stderr", "execContext"))
    assert step["meta"] == {"text": "it is certainly [masked]"}
    assert env == {"env": {"MYCRED": "[masked]"}}
    assert log.count("[masked]") == 2
    assert "plain-value" not in log
    assert b"plain-value" not in b"".join(live)


KEY = "sk-ant-0123456789"
ENVIRON = {"MY_API_KEY": KEY, "OTHER_TOKEN": "6789-sk-ant-é"}


def heard(*pieces: bytes, environ: dict[str, str] | None = None) -> list[bytes]:
    said: list[bytes] = []
    secrets = find_secrets(ENVIRON if environ is None else environ)
    with masked_listener(Listener(said.append), secrets) as masked:
        assert masked.on_stderr is not None
        for piece in pieces:
            masked.on_stderr(piece)
    return said


@given(
    st.lists(st.sampled_from([KEY, KEY[:6], "6789-sk-ant-é", "6789-sk", " ", "x\n", "é"])),
    st.lists(st.integers(1, 12)),
)
def test_no_key_passes_wherever_the_pieces_end(words: list[str], sizes: list[int]) -> None:
    text = "".join(words).encode()
    pieces, rest = [], text
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]
    said = b"".join(heard(*pieces, rest))

    for key in ENVIRON.values():
        assert key.encode() not in said
    if not any(key.encode() in text for key in ENVIRON.values()):
        assert said == text


SECRETS = Secrets((KEY,))


def unknown(*secrets: str) -> Secrets:
    """Return secrets of which only the fingerprints are known."""
    return Secrets((), take_fingerprints(secrets, b"salt"))


@pytest.fixture
def run_mask(world: World) -> RunDir:
    """Return the run directory of a turn that has begun."""
    thread = world.begun()
    run_mask = get_run_dir(world.store, thread, world.tip(thread))
    run_mask.begin("writer")
    return run_mask


@pytest.mark.parametrize("secrets", [SECRETS, unknown(KEY)])
def test_no_part_of_an_answer_keeps_a_key(secrets: Secrets) -> None:
    reply = AgentReply(
        meta={"why": f"used {KEY}", KEY: 1},
        content=f"It is {KEY}.",
        form="object",
        raw=b"\xff" + KEY.encode(),
        usage={"note": KEY},
        state={"key": [KEY], "by": {KEY: None}},
        session=f"s1-{KEY}",
        rung=KEY,
    )
    trace = {"events": [{"type": "tool", "output": KEY, KEY: KEY}]}
    left = StepFiles(prompt=f"Use {KEY}!", trace=trace, kind="auth", usage={"turns": 1, "by": KEY})
    said = KEY.encode()

    masked = mask_played(Played(reply, 1, 2, stdout=said, stderr=said, left=left), secrets)

    assert KEY not in repr(masked)
    assert masked.reply is not None
    assert masked.reply.meta == {"why": "used [masked]", "[masked]": 1}
    assert (masked.reply.session, masked.reply.rung) == ("s1-[masked]", "[masked]")
    assert masked.started_ms == 1
    assert masked.reply.state == {"key": ["[masked]"], "by": {"[masked]": None}}
    assert masked.left.trace == {
        "events": [{"type": "tool", "output": "[masked]", "[masked]": "[masked]"}]
    }
    assert (masked.left.kind, masked.left.usage) == ("auth", {"turns": 1, "by": "[masked]"})


def test_names_of_fields_stay_whatever_the_environment_has() -> None:
    trace = {"events": [{"type": "badLines"}], "badLines": 1}
    error = {"kind": "exited", "message": "badLines"}
    played = Played(None, 1, 2, error=error, left=StepFiles(trace=trace))

    masked = mask_played(played, Secrets(("badLines", "message")))

    assert masked.left.trace == {"events": [{"type": "[masked]"}], "badLines": 1}
    assert masked.error == {"kind": "exited", "message": "[masked]"}


def test_another_process_knows_the_secrets_by_their_fingerprints_alone(run_mask: RunDir) -> None:
    write_fingerprints(run_mask, (KEY, "c0rrect-h0rse"))

    assert KEY[4:] not in run_mask.read("prints")
    secrets = read_secrets(run_mask, find_secrets({"OTHER_TOKEN": KEY}))
    assert secrets.known == (KEY,)
    assert secrets.find_in(f"{KEY} c0rrect-h0rse") == (KEY, "c0rrect-h0rse")
    known = find_secrets({"A_TOKEN": KEY, "B_TOKEN": "c0rrect-h0rse"})
    assert read_secrets(run_mask, known).others is None


def test_run_without_fingerprints_is_masked_by_what_this_process_has(run_mask: RunDir) -> None:
    write_fingerprints(run_mask, ())
    assert run_mask.read("prints") == ""
    assert read_secrets(run_mask, find_secrets({"MY_TOKEN": KEY})) == SECRETS
    for document in ("[]", "{", '{"salt": 1}', '{"salt": "", "prints": [1]}'):
        run_mask.write("prints", document)
        assert read_secrets(run_mask, find_secrets({"MY_TOKEN": KEY})) == SECRETS


@pytest.mark.parametrize("outcome", ["too-much-output", "timed-out", "interrupted", "lost"])
def test_half_a_secret_at_the_end_of_an_output_is_left_out(outcome: RunOutcome) -> None:
    half = b"x " + KEY[:10].encode()
    run_mask = AgentRun(outcome, None, half, half, 1, 2)

    assert mask_run(run_mask, SECRETS)[2:4] == (b"x ", b"x ")
    assert mask_run(run_mask._replace(stdout=b"x sk-"), SECRETS).stdout == b"x sk-"
    assert mask_run(run_mask._replace(outcome="exited"), SECRETS).stdout == half


@pytest.mark.parametrize("end", [b" HTTP 402: pay\n", b" HTTP 402: pay", b"\ntwo\nlines\n"])
def test_end_of_a_long_line_is_kept_and_no_half_of_a_secret(end: bytes) -> None:
    line = KEY[10:].encode() + b"x" * 65536

    assert cut_to_lines(line + end, 65536) == (line + end)[16384:]
