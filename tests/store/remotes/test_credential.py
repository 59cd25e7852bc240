import os
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from shutil import which

import pytest

from uwf_git.store.remotes.remotes import RemoteUrl
from uwf_git.store.remotes.transport import Credential, find_credential, report_credential

Git = Callable[..., str]

GIT = which("git")
URL = RemoteUrl("http", "https://host:8443/team/x.git")


@pytest.fixture
def environ() -> dict[str, str]:
    return {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": ""}


@pytest.fixture
def kept(tmp_path: Path, git: Git) -> Path:
    """Return the file in which git stores credentials."""
    path = tmp_path / "kept"
    git("config", "--global", "credential.helper", f"store --file={path}", cwd=tmp_path)
    return path


def test_the_name_in_the_url_chooses(kept: Path, environ: dict[str, str]) -> None:
    kept.write_text("https://me:one@host\nhttps://you:two@host\n")
    found = find_credential(RemoteUrl("http", "https://you@host/x"), GIT, environ)
    assert found is not None
    assert found.password == "two"


@pytest.mark.parametrize(
    ("url", "password"),
    [
        ("http://x%0ahost=Host%0aprotocol=https%0ausername=me@evil/t.git", None),
        ("https://me:old@Host/x", "one"),
    ],
)
def test_a_url_gets_what_is_kept_for_its_host(
    kept: Path, environ: dict[str, str], url: str, password: str | None
) -> None:
    kept.write_text("https://me:one@Host\n")
    found = find_credential(RemoteUrl("http", url), GIT, environ)
    assert (found and found.password) == password


def test_without_a_terminal_there_is_no_prompt(kept: Path, environ: dict[str, str]) -> None:
    assert find_credential(URL, GIT, environ) is None
    assert find_credential(URL, None, environ) is None


def test_a_repository_around_us_names_no_helper(
    environ: dict[str, str], tmp_path: Path, git: Git
) -> None:
    git("init", "--quiet", cwd=tmp_path)
    git("config", "credential.helper", f"!touch {tmp_path}/ran; echo password=x", cwd=tmp_path)
    with chdir(tmp_path):
        assert find_credential(URL, GIT, environ) is None
    assert not (tmp_path / "ran").exists()


def test_what_was_right_is_kept_and_what_was_wrong_forgotten(
    kept: Path, environ: dict[str, str]
) -> None:
    fields = "protocol=https\nhost=host\nusername=me\npassword=x\n"
    credential = Credential("me", "x", fields)
    report_credential("approve", credential, GIT, environ)
    assert kept.read_text() == "https://me:x@host\n"
    report_credential("reject", credential, GIT, environ)
    assert kept.read_text() == ""
    report_credential("approve", credential, None, environ)
    assert kept.read_text() == ""
