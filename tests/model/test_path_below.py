import pytest

from uwf_git.model.names import check_path_below


@pytest.mark.parametrize(
    "path", ["a.json", ".state/status.json", "docs/计划/000.md", "a b", ".github/x"]
)
def test_path_of_the_work_is_fine(path: str) -> None:
    assert check_path_below(path) is None


def test_other_paths_are_refused() -> None:
    for path, problem in [
        ("", "names no file"),
        (" ", "names no file"),
        ("a\0b", "names no file"),
        ("a\nb", "names no file"),
        (".", "names no file"),
        ("docs/", "names no file"),
        ("/etc/passwd", "has to be relative to the work directory"),
        ("~/x", "has to be relative to the work directory"),
        ("..", "leads out of the work directory"),
        ("a/../../b", "leads out of the work directory"),
        (".git/config", "is git's own"),
        ("sub/.GIT/hooks/x", "is git's own"),
    ]:
        assert check_path_below(path) == problem
