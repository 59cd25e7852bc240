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
