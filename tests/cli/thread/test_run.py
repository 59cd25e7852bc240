import json

import pytest
from cli.program import ANSWER, Uwf


def test_thread_is_driven_from_where_it_is(uwf: Uwf) -> None:
    thread = uwf.begun()
    uwf.json("thread", "step", thread)

    ran = uwf("thread", "run", thread[:22])

    document = json.loads(ran.out)
    assert list(document) == [
        *("workflow", "thread", "head", "status", "role", "next", "steps", "stopped")
    ]
    assert (document["thread"], document["steps"], document["stopped"]) == (thread, 1, "end")
    assert ran.err.startswith("step 2 checker: What was said. (")


def test_pause_ends_the_run_in_order(uwf: Uwf) -> None:
    thread = uwf.begun()
    uwf.json("thread", "step", thread)
    pause = f"uwf thread pause $UWF_THREAD_ID >/dev/null; {ANSWER}"

    ran = uwf("thread", "run", thread, "--agent", uwf.agent(pause, name="pausing"))

    document = json.loads(ran.out)
    assert (ran.status, document["stopped"], document["status"]) == (0, "paused", "paused")
    assert (document["role"], document["steps"]) == ("checker", 1)
    refused = uwf("thread", "run", thread)
    assert (refused.status, refused.out) == (1, "")
    assert f"hint: `uwf thread resume {thread}` lets it go on" in refused.err


def test_killed_thread_is_reported_with_status_one(uwf: Uwf) -> None:
    thread = uwf.begun()
    kill = "setsid uwf thread kill $UWF_THREAD_ID -m 'of no use' >/dev/null & sleep 60"

    ran = uwf("thread", "run", thread, "--agent", uwf.agent(kill, name="killing"))

    document = json.loads(ran.out)
    assert (ran.status, document["stopped"], document["status"]) == (1, "killed", "killed")
    assert (
        f"error: thread {thread} was killed while it ran, by C O Mitter <committer@example.com>: "
        f"of no use\nhint: `uwf thread fork {thread}` continues it in a new thread\n"
    ) in ran.err
    assert f"refs/archive/{thread}" in ran.err


def test_agents_and_directory_of_the_run_reach_a_driver_in_the_background(uwf: Uwf) -> None:
    (uwf.place / "sub dir").mkdir()
    thread = uwf.begun("no-such-agent")
    mine = uwf.agent(f"pwd >where; {ANSWER}", name="mine")
    words = ["--agent", f"writer={mine}", "--agent", "checker=another", "--workdir", "sub dir"]
    words += ["--max-steps", "1", "--stream", "--trust"]

    driver = uwf.json("thread", "run", thread, "--background", *words)
    [rest] = uwf.json("thread", "wait", thread, "--timeout", "30")

    assert (rest["status"], driver["thread"]) == ("ready", thread)
    assert (uwf.place / "sub dir" / "where").read_text() == f"{uwf.place}/sub dir\n"
    with open(driver["log"], encoding="utf-8") as log:
        assert log.read().startswith("What was said.\n")


def test_role_of_a_background_run_is_checked_at_once(uwf: Uwf) -> None:
    ran = uwf("thread", "run", uwf.begun(), "--background", "--until", "reviewer")

    assert (ran.status, ran.out) == (1, "")
    assert "has no role reviewer" in ran.err


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["01ARZ3NDEKTSV4RRFFQ69G5FAV"], 1, "there is no thread 01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        (["{thread}", "--until", "nobody"], 1, "has no role nobody"),
        (["{thread}", "--max-steps", "0"], 2, "'--max-steps'"),
        (["{thread}", "--workdir", "nowhere"], 1, "nowhere"),
    ],
)
def test_wrong_usage_is_reported_and_run_nothing(
    words: list[str], status: int, said: str, uwf: Uwf
) -> None:
    thread = uwf.begun()

    ran = uwf("thread", "run", *[word.format(thread=thread) for word in words])

    assert (ran.status, ran.out) == (status, "")
    assert said in ran.err.splitlines()[0]
    assert uwf.json("thread", "show", thread)["depth"] == 0


@pytest.mark.parametrize("more", [(), ("--background",)])
def test_agent_of_a_missing_role_is_refused_before_the_run(more: tuple[str, ...], uwf: Uwf) -> None:
    thread = uwf.begun()

    ran = uwf("thread", "run", thread, "--agent", "writer=x", "--agent", "editor=x", *more)

    assert (ran.status, ran.out) == (1, "")
    assert "workflow demo has no role editor" in ran.err
    assert uwf.json("thread", "show", thread)["depth"] == 0
