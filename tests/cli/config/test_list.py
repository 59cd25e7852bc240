from cli.program import Uwf


def test_every_setting_is_listed_with_its_meaning(uwf: Uwf) -> None:
    uwf.json("config", "set", "agent", "uwf-x")

    rows = {row["name"]: row for row in uwf.json("config", "list", "--all")}

    assert rows["uwf.agent"]["value"] == "uwf-x"
    assert rows["uwf.store"]["value"] is None
    assert all(row["meaning"] for row in rows.values())
    brief = {row["name"] for row in uwf.json("config", "list")}
    assert brief < rows.keys()


def test_table_has_no_holes(uwf: Uwf) -> None:
    told = uwf("config", "list", "--format", "text").out

    assert "uwf.agent" in told
    assert "None" not in told


def test_wide_table_is_not_cut(uwf: Uwf) -> None:
    uwf.json("config", "set", "agent", "uwf-" + "x" * 60)
    screen = {"stdout_is_tty": True, "environ": {**uwf.session.environ, "COLUMNS": "60"}}

    brief, wide = (
        uwf("config", "list", "--format", "text", *words, **screen).out
        for words in ((), ("--wide",))
    )

    assert max(map(len, brief.splitlines())) <= 60
    assert "uwf-" + "x" * 60 in wide
    assert "…" not in wide
