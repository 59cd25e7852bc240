from cli.program import Uwf
from cli.sharing import make_hub


def test_a_clone_says_what_came(uwf: Uwf) -> None:
    thread = uwf.begun()
    hub = make_hub(uwf)
    uwf.json("push")
    ran = uwf("clone", hub, "--format", "text", repo=None)
    assert ran.out.splitlines() == [
        f"repo      {uwf.place}/hub.git",
        f"created   refs/threads/{thread}",
        "created   refs/workflows/demo",
    ]
    again = uwf("clone", hub, repo=None)
    assert (again.status, again.out) == (1, "")
    assert "exists already" in again.err
