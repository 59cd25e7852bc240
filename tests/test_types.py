"""The types hold, which mypy checks: the rules of hygiene.py that take half a minute at first."""

from collections.abc import Callable
from pathlib import Path

import hygiene
import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def checkout(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], Path]:
    """Return a checkout with one file in it."""

    def with_file(name: str, text: str) -> Path:
        # So that mypy reads the types of the standard library once.
        monkeypatch.setenv("MYPY_CACHE_DIR", str(pytestconfig.cache.mkdir("mypy")))
        (tmp_path / "pyproject.toml").write_text("[tool.mypy]\nstrict = true\nfiles = ['tests']\n")
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        return tmp_path

    return with_file


@pytest.mark.parametrize("rule", hygiene.TYPE_RULES, ids=lambda rule: rule.__name__)
def test_types_hold(rule: hygiene.Rule) -> None:
    if complaints := rule(ROOT):
        told = "\n".join(complaints)
        pytest.fail(f"{rule.__doc__}\n\n{told}", pytrace=False)


def test_function_without_types_is_told(checkout: Callable[[str, str], Path]) -> None:
    [told] = hygiene.types_hold(checkout("tests/a.py", "def f(x): ...\n"))

    assert told.startswith("tests/a.py:1: error")


def test_what_windows_lacks_is_told(checkout: Callable[[str, str], Path]) -> None:
    root = checkout("uwf_git/plan/a.py", "import os\nos.fork()\n")

    [told] = hygiene.plans_need_no_posix(root)

    assert 'no attribute "fork"' in told
