from uwf_git.agents.reply import AgentReply
from uwf_git.commands.agent_run.mask import mask_played
from uwf_git.commands.turn.turn import Played, StepFiles

KEY = "sk-ant-0123456789"
ENVIRON = {"ANTHROPIC_API_KEY": KEY, "HOME": "/home/me"}


def test_no_part_of_an_answer_keeps_a_key() -> None:
    reply = AgentReply(
        meta={"why": f"used {KEY}"},
        content=f"It is {KEY}.",
        form="object",
        raw=b"\xff" + KEY.encode(),
        usage={"note": KEY},
        state={"key": [KEY]},
        session=f"s1-{KEY}",
        rung=KEY,
    )
    trace = {"events": [{"type": "tool", "output": KEY}]}
    left = StepFiles(prompt=f"Use {KEY}!", trace=trace, kind="auth", usage={"turns": 1, "by": KEY})
    said = KEY.encode()

    masked = mask_played(Played(reply, 1, 2, stdout=said, stderr=said, left=left), ENVIRON)

    assert KEY not in repr(masked)
    assert masked.reply is not None
    assert masked.reply.meta == {"why": "used [masked]"}
    assert (masked.reply.session, masked.reply.rung) == ("s1-[masked]", "[masked]")
    assert masked.started_ms == 1
    assert masked.left.trace == {"events": [{"type": "tool", "output": "[masked]"}]}
    assert (masked.left.kind, masked.left.usage) == (
        "auth",
        {"turns": 1, "by": "[masked]"},
    )


def test_failure_does_not_quote_a_key() -> None:
    error = {"kind": "exited", "message": f"401 for {KEY}"}

    masked = mask_played(Played(None, 1, 2, error=error, hint=f"check {KEY}"), ENVIRON)

    assert masked.error == {"kind": "exited", "message": "401 for [masked]"}
    assert masked.hint == "check [masked]"


def test_without_keys_nothing_changes() -> None:
    played = Played(None, 1, 2, error={"kind": "x", "message": KEY})

    assert mask_played(played, {"HOME": "/home/me"}) is played
