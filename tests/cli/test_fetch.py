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
