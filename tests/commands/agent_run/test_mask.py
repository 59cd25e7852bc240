import pytest
from commands.world import World
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agents.command_line import AgentReply, AgentRun, Listener, RunOutcome
from uwf_git.commands.agent_run.run_checks import (
    Secrets,
    mask_played,
    mask_run,
    masked_listener,
    read_secrets,
    write_fingerprints,
)
from uwf_git.commands.turn.turn import Played, StepFiles
from uwf_git.engine.masking import take_fingerprints
from uwf_git.store.threads.local_files import RunDir, get_run_dir

KEY = "sk-ant-0123456789"
ENVIRON = {"MY_API_KEY": KEY, "OTHER_TOKEN": "6789-sk-ant-é"}


def heard(*pieces: bytes, environ: dict[str, str] | None = None) -> list[bytes]:
    said: list[bytes] = []
    with masked_listener(Listener(said.append), ENVIRON if environ is None else environ) as masked:
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
def run(world: World) -> RunDir:
    """Return the run directory of a turn that has begun."""
    thread = world.begun()
    run = get_run_dir(world.store, thread, world.tip(thread))
    run.begin("writer")
    return run


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
    assert (masked.left.kind, masked.left.usage) == (
        "auth",
        {"turns": 1, "by": "[masked]"},
    )


def test_names_of_fields_stay_whatever_the_environment_has() -> None:
    trace = {"events": [{"type": "badLines"}], "badLines": 1}
    error = {"kind": "exited", "message": "badLines"}
    played = Played(None, 1, 2, error=error, left=StepFiles(trace=trace))

    masked = mask_played(played, Secrets(("badLines", "message")))

    assert masked.left.trace == {"events": [{"type": "[masked]"}], "badLines": 1}
    assert masked.error == {"kind": "exited", "message": "[masked]"}


def test_another_process_knows_the_secrets_by_their_fingerprints_alone(run: RunDir) -> None:
    write_fingerprints(run, {"MY_TOKEN": KEY, "MY_PASSWORD": "c0rrect-h0rse"})

    assert KEY[4:] not in run.read("prints")
    secrets = read_secrets(run, {"OTHER_TOKEN": KEY})
    assert secrets.known == (KEY,)
    assert secrets.find_in(f"{KEY} c0rrect-h0rse") == (KEY, "c0rrect-h0rse")
    assert read_secrets(run, {"A_TOKEN": KEY, "B_TOKEN": "c0rrect-h0rse"}).others is None


def test_run_without_fingerprints_is_masked_by_what_this_process_has(run: RunDir) -> None:
    write_fingerprints(run, {"HOME": "/home/me"})
    assert run.read("prints") == ""
    assert read_secrets(run, {"MY_TOKEN": KEY}) == SECRETS
    for document in ("[]", "{", '{"salt": 1}', '{"salt": "", "prints": [1]}'):
        run.write("prints", document)
        assert read_secrets(run, {"MY_TOKEN": KEY}) == SECRETS


@pytest.mark.parametrize("outcome", ["too-much-output", "timed-out", "interrupted", "lost"])
def test_half_a_secret_at_the_end_of_an_output_is_left_out(outcome: RunOutcome) -> None:
    half = b"x " + KEY[:10].encode()
    run = AgentRun(outcome, None, half, half, 1, 2)

    assert mask_run(run, SECRETS)[2:4] == (b"x ", b"x ")
    assert mask_run(run._replace(stdout=b"x sk-"), SECRETS).stdout == b"x sk-"
    assert mask_run(run._replace(outcome="exited"), SECRETS).stdout == half
