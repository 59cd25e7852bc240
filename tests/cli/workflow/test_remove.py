from cli.program import Uwf
from cli.sharing import clone, make_hub

from uwf_git.store.store import open_store


def test_removal_and_rollback_travel_like_any_version(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file())
    hub = make_hub(uwf)
    uwf.json("push")
    there = clone(uwf, hub)
    assert len(uwf.json("workflow", "list", **there)) == 1

    uwf.json("workflow", "remove", "demo")
    uwf.json("push")
    uwf.json("fetch", **there)
    assert uwf.json("workflow", "list", **there) == []
    assert uwf.json("verify", **there)["problems"] == []

    uwf.json("workflow", "rollback", "demo", **there)
    uwf.json("push", **there)
    uwf.json("fetch")
    assert len(uwf.json("workflow", "list")) == 1
    tips = {open_store(path).refs.find("refs/workflows/demo") for path in (hub, there["repo"])}
    assert len(tips) == 1


def test_removed_here_and_changed_there_keeps_both(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file())
    hub = make_hub(uwf)
    uwf.json("push")
    there = clone(uwf, hub)
    uwf.json("workflow", "put", uwf.file() + "", **there)
    uwf.json("workflow", "remove", "demo", **there)
    uwf.json("push", **there)
    with open(uwf.file(), "a", encoding="utf-8") as file:
        file.write("# mine\n")

    uwf.json("workflow", "put", file.name)
    ran = uwf("fetch", "--format", "text")

    assert ran.status == 4
    assert "diverged  refs/workflows/demo" in ran.out
    assert len(uwf.json("workflow", "list")) == 1
