from pathlib import Path

from cli.program import Uwf


def test_what_is_not_set_and_what_is_no_setting(uwf: Uwf) -> None:
    assert uwf("config", "get", "agent").status == 1
    assert uwf("config", "get", "nothing").status == 2
    assert uwf("config", "get", "user.name").status == 2


def test_wrong_setting_is_refused_and_changes_nothing(uwf: Uwf) -> None:
    for words, status, said in [
        (["nothing", "x"], 2, "there is no setting nothing"),
        (["trustedAgent", "{}"], 2, "there is no setting trustedAgent"),
        (["store", "maybe"], 2, "uwf.store cannot be 'maybe'"),
        (["agent", "'x"], 1, "no closing quotation"),
        (["agent", "\udcff"], 1, "the value is not UTF-8 text"),
        (["uwf.format", "xml"], 2, "hint: it is json, yaml or text"),
        (["agent"], 2, "missing argument 'VALUE'"),
    ]:
        config = Path(f"{uwf.session.repo}/config")
        before = config.read_text()

        uwf("config", "set", *words).refused(status, said)
        assert config.read_text() == before
