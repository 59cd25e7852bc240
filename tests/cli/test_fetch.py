import json

from cli.program import Uwf
from cli.sharing import clone, make_hub


def test_what_was_fetched_is_listed(uwf: Uwf) -> None:
    thread = uwf.begun()
    hub = make_hub(uwf)
    uwf.json("push")
    other = clone(uwf, hub)
    assert uwf("fetch", "--format", "text", **other).out == "2 unchanged\n"
    uwf.json("thread", "step", thread)
    uwf.json("push")
    document = uwf.json("fetch", **other)
    assert document == {
        "remote": "origin",
        "created": [],
        "moved": [f"refs/threads/{thread}"],
        "archived": [],
        "diverged": [],
        "refused": [],
        "busy": [],
        "ignored": [],
        "unchanged": 1,
    }


def test_two_ways_are_listed_and_reported(uwf: Uwf) -> None:
    thread = uwf.begun()
    hub = make_hub(uwf)
    uwf.json("push")
    other = clone(uwf, hub)
    player = uwf.agent("""echo '{"meta": {"text": "other"}, "content": "x"}'""", name="other")
    uwf.json("thread", "step", thread, "--workdir", ".", "--agent", player, **other)
    uwf.json("thread", "step", thread)
    uwf.json("push")
    ran = uwf("fetch", **other)
    assert ran.status == 4
    (row,) = json.loads(ran.out)["diverged"]
    assert row["ref"] == f"refs/threads/{thread}"
    assert f"uwf thread fork {thread} --at {row['local']}" in row["hint"]
    assert row["hint"] in ran.err
    told = uwf("fetch", "--format", "text", **other).out
    assert told.splitlines() == [
        f"diverged  refs/threads/{thread}: here {row['local']}, there {row['remote']}",
        "1 unchanged",
    ]
    forked = uwf.json("thread", "fork", thread, "--at", row["local"], **other)
    assert forked["commit"] == row["local"]
    assert uwf.json("thread", "show", thread, **other)["commit"] == row["remote"]
    assert uwf.json("fetch", **other)["diverged"] == []
