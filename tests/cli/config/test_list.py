from cli.program import Uwf


def test_every_setting_is_listed_with_its_meaning(uwf: Uwf) -> None:
    uwf.json("config", "set", "agent", "uwf-x")

    rows = {row["name"]: row for row in uwf.json("config", "list")}

    assert rows["uwf.agent"]["value"] == "uwf-x"
    assert rows["uwf.store"]["value"] is None
    assert all(row["meaning"] for row in rows.values())


def test_table_has_no_holes(uwf: Uwf) -> None:
    told = uwf("config", "list", "--format", "text").out

    assert "uwf.agent" in told
    assert "None" not in told
