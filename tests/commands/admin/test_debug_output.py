import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from uwf_git.commands.admin import switch_on_debug_log
from uwf_git.debug_log import debug, is_on, switch_off

KEY = "sk-" + "a1B2c3D4" * 4


@pytest.fixture(autouse=True)
def _off_again() -> Iterator[None]:
    yield
    switch_off()


@pytest.mark.parametrize("environ", [{}, {"UWF_DEBUG": ""}, {"UWF_DEBUG": "0"}])
def test_log_is_off_by_default(environ: dict[str, str]) -> None:
    assert switch_on_debug_log(environ, cwd="/") == environ
    assert not is_on()


@pytest.mark.parametrize(
    ("environ", "is_asked"),
    [
        ({"UWF_DEBUG": "1"}, False),
        ({}, True),
        ({"UWF_DEBUG": "0"}, True),
        ({"UWF_DEBUG": ""}, True),
    ],
)
def test_one_or_a_flag_is_standard_error(
    environ: dict[str, str],
    is_asked: bool,  # noqa: FBT001 (parametrize passes it by name)
    capfd: pytest.CaptureFixture[str],
) -> None:
    passed_on = switch_on_debug_log({"A": "b", **environ}, cwd="/", is_asked=is_asked)

    assert passed_on == {"A": "b", "UWF_DEBUG": "1"}
    assert json.loads(capfd.readouterr().err)["tag"] == "W8FET4CS"


@pytest.mark.parametrize("is_asked", [False, True])
def test_anything_else_is_a_file_whatever_the_flag_says(
    is_asked: bool,  # noqa: FBT001 (parametrize passes it by name)
    tmp_path: Path,
) -> None:
    passed_on = switch_on_debug_log(
        {"UWF_DEBUG": "debug.log"}, cwd=str(tmp_path), is_asked=is_asked
    )
    debug("4KNMR2PX", "x")

    path = tmp_path / "debug.log"
    assert passed_on == {"UWF_DEBUG": str(path)}
    assert [json.loads(line)["content"] for line in path.read_text().splitlines()] == [
        "debug log on",
        "x",
    ]
    assert path.stat().st_mode & 0o077 == 0


def test_keys_and_secrets_of_the_environment_are_masked(tmp_path: Path) -> None:
    path = tmp_path / "log"
    switch_on_debug_log({"UWF_DEBUG": str(path), "MY_TOKEN": "hunter22-and-more"}, cwd="/")
    debug("4KNMR2PX", "x", key=KEY, url="https://me:pass-word@host/", own="a hunter22-and-more b")

    told = path.read_text()
    assert not any(secret in told for secret in (KEY, "pass-word", "hunter22"))
    assert json.loads(told.splitlines()[1])["own"] == "a [masked] b"
