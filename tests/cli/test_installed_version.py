from importlib.metadata import version

from uwf_git.cli.installed_version import installed_version


def test_version_is_that_of_the_package() -> None:
    assert installed_version() == version("uwf-git")


def test_package_that_is_not_there_has_no_known_version() -> None:
    assert installed_version("uwf-no-such-package") == "unknown"
