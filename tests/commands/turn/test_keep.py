import pytest
from refusing import refuses

from uwf_git.commands.turn.limits import KeepRules, read_keep_rules, record_env
from uwf_git.store.git.config import GitConfig


def config(**values: str) -> GitConfig:
    return GitConfig({f"uwf.{name.lower()}": [value] for name, value in values.items()})


def test_64_kib_of_a_log_and_no_variable_are_kept_unless_it_is_set() -> None:
    assert read_keep_rules(config()) == KeepRules(65536, ())
    assert read_keep_rules(config(keepLogs="1m", recordEnv="LANG, TZ NODE_*")) == KeepRules(
        1024 * 1024, ("LANG", "TZ", "NODE_*")
    )
    assert read_keep_rules(config(keepLogs="0")).log_bytes == 0


@pytest.mark.parametrize("value", ["much", "-1", "1.5", "64kb"])
def test_size_that_is_none_is_reported(value: str) -> None:
    with refuses("bad-keep-setting", match=r"uwf\.keepLogs is .*, not a size"):
        read_keep_rules(config(keepLogs=value))


def test_secret_is_masked_by_its_name_and_wherever_it_stands() -> None:
    environ = {
        "API_KEY": "sk-0123456789",
        "DB_PASSWORD": "short",
        "URL": "https://x/?key=sk-0123456789",
        "EMPTY_TOKEN": "",
    }

    assert record_env(environ, ("*",)) == {
        "API_KEY": "[masked]",
        "DB_PASSWORD": "[masked]",
        "EMPTY_TOKEN": "",
        "URL": "https://x/?key=[masked]",
    }
