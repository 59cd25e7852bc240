from pathlib import Path

from cli.program import Uwf


def test_setting_is_removed(uwf: Uwf) -> None:
    uwf.json("config", "set", "retries", "2")

    assert uwf.json("config", "unset", "retries") == {"name": "uwf.retries", "value": None}

    assert uwf("config", "get", "retries").status == 1
    assert "retries" not in Path(f"{uwf.session.repo}/config").read_text()
    ran = uwf("config", "unset", "retries")
    assert (ran.status, "uwf.retries is not set" in ran.err) == (1, True)


def test_unknown_setting_is_refused(uwf: Uwf) -> None:
    assert uwf("config", "unset", "retires").status == 2
