from cli.program import Uwf


def test_remotes_are_listed(uwf: Uwf) -> None:
    assert uwf.json("remote", "list") == []
    uwf.json("remote", "add", "origin", "https://me:secret@host/x")
    row = {"name": "origin", "url": "https://host/x", "threads": 0, "archived": 0, "workflows": 0}
    assert uwf.json("remote", "list") == [row]
    assert uwf("remote", "list", "--format", "text").out.splitlines()[1].split() == [
        "origin",
        "https://host/x",
        "0",
        "0",
        "0",
    ]
