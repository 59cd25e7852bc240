from uwf_git.cli.session import installed_version


def test_missing_package_has_no_known_version() -> None:
    assert installed_version("uwf-no-such-package") == "unknown"
