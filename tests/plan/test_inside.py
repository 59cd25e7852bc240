import os
import unicodedata
from pathlib import Path

import pytest

from uwf_git.plan.project_files import find_spelled, resolve_inside


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("a.py", "a.py"),
        ("./src//a.py", "src/a.py"),
        ("src/", "src"),
        (".", "."),
        ("src/../a", "a"),
        ("..a", "..a"),
        ("", None),
        (" ", None),
        ("..", None),
        ("src/../../a", None),
        ("/etc/passwd", None),
        ("a\0b", None),
        ("out/a", None),
        ("out", "out"),
        ("in/a", "in/a"),
    ],
)
def test_path_is_below_the_work_directory(tmp_path: Path, path: str, inside: str | None) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "out").symlink_to(tmp_path)
    (project / "in").symlink_to("src")

    assert resolve_inside(str(project), path) == inside


def test_absolute_path_below_a_linked_work_directory(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    linked = tmp_path / "linked"
    linked.symlink_to("real")

    for typed in (linked, tmp_path / "real"):
        assert resolve_inside(str(linked), str(typed / "a")) == "a"


def test_path_is_found_in_either_form_of_unicode(tmp_path: Path) -> None:
    composed, decomposed = (unicodedata.normalize(form, "é/ü.md") for form in ("NFC", "NFD"))
    mixed = os.path.join(decomposed.split("/")[0], composed.split("/")[1])
    (tmp_path / mixed).parent.mkdir()
    (tmp_path / mixed).touch()

    assert find_spelled(str(tmp_path), composed) == mixed
    assert find_spelled(str(tmp_path), decomposed) == mixed
    assert find_spelled(str(tmp_path), "é/o") is None
    assert find_spelled(str(tmp_path), "a/é") is None
