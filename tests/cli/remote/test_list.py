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


def test_wide_table_is_not_cut(uwf: Uwf) -> None:
    uwf.json("remote", "add", "origin", "https://host/" + "x" * 60)
    screen = {"stdout_is_tty": True, "environ": {**uwf.session.environ, "COLUMNS": "60"}}

    brief, wide = (
        uwf("remote", "list", "--format", "text", *words, **screen).out
        for words in ((), ("--wide",))
    )

    assert max(map(len, brief.splitlines())) <= 60
    assert "https://host/" + "x" * 60 in wide
