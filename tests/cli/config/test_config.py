from collections.abc import Callable
from pathlib import Path

from cli.program import Uwf


def test_setting_of_git_is_read(uwf: Uwf, git: Callable[..., str]) -> None:
    git("config", "uwf.agent", "uwf-x", cwd=Path(str(uwf.session.repo)))

    assert uwf.json("config", "get", "agent") == {"name": "uwf.agent", "value": "uwf-x"}


def test_what_is_not_set_and_what_is_no_setting(uwf: Uwf) -> None:
    assert uwf("config", "get", "agent").status == 1
    assert uwf("config", "get", "nothing").status == 2
    assert uwf("config", "get", "user.name").status == 2


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


def test_setting_is_git_s_own(uwf: Uwf, git: Callable[..., str]) -> None:
    value = ' "a" # ; \\ b'

    assert uwf.json("config", "set", "agent", f"x {value}")["value"] == f"x {value}"

    read = git("config", "uwf.agent", cwd=Path(str(uwf.session.repo)))
    assert read == f"x {value}\n"


def test_wrong_setting_is_refused_and_changes_nothing(uwf: Uwf) -> None:
    for words, status, said in [
        (["nothing", "x"], 2, "there is no setting nothing"),
        (["trustedAgent", "{}"], 2, "there is no setting trustedAgent"),
        (["store", "maybe"], 2, "uwf.store cannot be 'maybe'"),
        (["agent", "'x"], 1, "no closing quotation"),
        (["agent", "\udcff"], 1, "the value is not UTF-8 text"),
        (["agent"], 2, "missing argument 'VALUE'"),
    ]:
        config = Path(f"{uwf.session.repo}/config")
        before = config.read_text()

        ran = uwf("config", "set", *words)

        assert (ran.status, ran.out) == (status, "")
        assert said in ran.err
        assert config.read_text() == before


def test_format_is_one_that_exists(uwf: Uwf) -> None:
    assert uwf("config", "set", "format", "yaml").status == 0
    refused = uwf("config", "set", "uwf.format", "xml")

    assert refused.status == 2
    assert "hint: it is json, yaml or text" in refused.err
