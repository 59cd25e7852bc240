from cli.program import Uwf
from commands.world import DEMO


def test_what_may_run_is_listed_with_its_settings(uwf: Uwf) -> None:
    long = "x" * 300
    agents = (
        f"name: demo\nagentOverrides:\n  checker: {{command: c, timeout: 9}}\n  writer: '{long}'"
    )
    uwf.json("workflow", "put", uwf.file(DEMO.replace("name: demo", agents)))

    rows = sorted(uwf.json("agent", "trusted"), key=lambda row: str(row["command"]))
    assert rows[0] == {"command": "c", "settings": {"timeout": 9}, "where": "store"}
    assert rows[1]["command"].startswith("sha256:")


def test_nothing_is_trusted_at_first(uwf: Uwf) -> None:
    assert uwf.json("agent", "trusted") == []
    assert uwf("agent", "trusted", "--format", "text").out == ""
