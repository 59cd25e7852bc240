import json
from pathlib import Path

from cli.program import Uwf
from cli.sharing import clone, make_hub


def test_what_was_pushed_is_listed(uwf: Uwf) -> None:
    thread = uwf.begun()
    make_hub(uwf)
    document = uwf.json("push", "origin", thread[:12])
    (row,) = document["pushed"]
    assert (row["ref"], row["from"], row["status"]) == (f"refs/threads/{thread}", None, "created")
    assert document == {
        "remote": "origin",
        "pushed": [row],
        "rejected": [],
        "behind": [],
        "unchanged": 0,
    }
    assert uwf("push", "--format", "text").out == "created     refs/workflows/demo\n1 unchanged\n"
    assert uwf("push", "--format", "text").out == "2 unchanged\n"


def test_what_is_newer_there_is_listed_and_reported(uwf: Uwf) -> None:
    thread = uwf.begun()
    other = clone_with_a_step(uwf, thread)
    uwf.json("thread", "step", thread)
    ran = uwf("push")
    assert ran.status == 4
    (row,) = json.loads(ran.out)["rejected"]
    assert (row["ref"], row["status"]) == (f"refs/threads/{thread}", "fetch-first")
    assert ran.err.splitlines() == [
        f"error: origin has something newer of refs/threads/{thread}",
        "hint: `uwf fetch origin` brings it here; then push again",
    ]
    assert uwf("push", "--format", "text").out.startswith(f"fetch-first refs/threads/{thread}\n")
    assert other


def clone_with_a_step(uwf: Uwf, thread: str) -> dict[str, str]:
    hub = make_hub(uwf)
    uwf.json("push")
    other = clone(uwf, hub)
    uwf.json("thread", "step", thread, "--workdir", ".", "--agent", uwf.agent(), **other)
    uwf.json("push", **other)
    return other


def test_a_refusal_is_listed_and_reported(uwf: Uwf) -> None:
    uwf.begun()
    hook = Path(make_hub(uwf), "hooks", "pre-receive")
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'not today' >&2\nexit 1\n")
    hook.chmod(0o755)
    ran = uwf("push", "--format", "json")
    assert ran.status == 1
    rejected = json.loads(ran.out)["rejected"]
    assert {row["status"] for row in rejected} == {"refused"}
    assert {row["said"] for row in rejected} == {"not today"}
    assert {row["problem"] for row in rejected} == {"pre-receive hook declined"}
    assert json.loads(ran.err)["error"]["code"] == "push-refused"


def test_a_missing_remote_is_one_line(uwf: Uwf) -> None:
    uwf.begun()
    uwf.json("remote", "add", "origin", "nowhere.git")
    for words in (["push"], ["fetch"], ["push", "else"]):
        ran = uwf(*words)
        assert (ran.status, ran.out) == (1, "")
        assert len(ran.err.splitlines()) == 2
