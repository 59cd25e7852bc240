"""The seal holds: a test sees nothing of this machine, and a run that leaks fails."""

import os
import pwd
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import seal

LEAKY = """
import os, subprocess, tempfile
from pathlib import Path

def test_that_keeps_a_process(monkeypatch):
    kept = subprocess.Popen(["sleep", "61"], start_new_session=True)
    environ = Path(f"/proc/{kept.pid}/environ")
    # Just after exec(2) it is empty, and nothing tells whose process that is.
    while environ.exists() and not environ.read_bytes():
        pass

def test_that_keeps_a_directory():
    tempfile.mkdtemp(prefix="kept-")

def test_that_writes_to_the_real_store():
    (Path(os.environ["REAL_HOME"]) / ".uwf" / "surprise").write_text("boo")
"""

GOLDEN = """
def test_same(golden):
    golden("same.txt", "as ever\\n")

def test_other(golden):
    golden("other.txt", "one\\nthree\\n")

def test_bytes(golden):
    golden("deep/er.bin", b"\\xff\\r\\n")
"""


def inner_run(suite: Path, *arguments: str, home: Path) -> tuple[int, str]:
    """Run pytest on *suite*, under the conftest.py of this directory."""
    here = Path(__file__).parent
    conftest = (here / "conftest.py").read_text().replace("_GRACE_S = 3.0", "_GRACE_S = 0.0")
    (suite / "conftest.py").write_text(conftest)
    (suite / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {here}\naddopts = --import-mode=importlib"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    ran = subprocess.run(
        [*command, f"--basetemp={suite / 'temporary'}"],
        cwd=suite,
        env=os.environ | {"HOME": str(home), "REAL_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr


def test_home_is_new_and_holds_only_settings_of_git() -> None:
    assert Path.home() != Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert [path.name for path in Path.home().iterdir()] == [".gitconfig"]
    assert Path("~/.uwf").expanduser() == Path(os.environ["HOME"]) / ".uwf"


def test_a_test_stands_in_its_own_home_not_in_the_checkout() -> None:
    assert Path.cwd().samefile(Path.home())


def test_git_sees_the_fixed_identity_and_no_settings_of_this_machine(
    git: Callable[..., str], tmp_path: Path
) -> None:
    ident = git("var", "GIT_AUTHOR_IDENT", cwd=tmp_path)

    assert ident == "A U Thor <author@example.com> 1760000000 +0000\n"
    assert git("config", "--list", "--name-only", cwd=tmp_path).split() == [
        "gc.autodetach",
        "init.defaultbranch",
    ]


@pytest.mark.parametrize(
    "name",
    ["GIT_DIR", "UWF_REPO", "XDG_CONFIG_DIRS", "LC_TIME", "FORCE_COLOR", "GH_TOKEN", "HTTPS_PROXY"],
)
def test_what_the_machine_would_add_is_removed(name: str, tmp_path: Path) -> None:
    assert name not in seal.sealed_environment({name: "x"}, place=tmp_path)


def test_the_environment_of_this_test_is_sealed() -> None:
    strangers = {name for name in os.environ if name.startswith(("GIT_", "UWF_", "XDG_"))}

    assert strangers <= seal.sealed_environment({}, place=Path()).keys()
    assert os.environ["EDITOR"] == "false"


def test_network_is_closed() -> None:
    with socket.socket() as stream, socket.socket(type=socket.SOCK_DGRAM) as datagram:
        for attempt in (
            lambda: stream.connect(("192.0.2.1", 80)),
            lambda: stream.connect_ex(("192.0.2.1", 80)),
            lambda: datagram.sendto(b"x", ("192.0.2.1", 53)),
            lambda: socket.create_connection(("example.com", 443)),
        ):
            with pytest.raises(pytest.fail.Exception, match=r"192\.0\.2\.1|example\.com"):
                attempt()


def test_no_except_clause_takes_the_closed_network_for_a_network_that_is_down() -> None:
    assert not issubclass(pytest.fail.Exception, Exception)


def test_snapshots_tell_what_came_went_and_changed(tmp_path: Path) -> None:
    store = tmp_path / "store"
    nothing = seal.snapshot(store)
    store.mkdir()
    (store / "kept").touch()
    (store / "gone").touch()
    before = seal.snapshot(store)
    (store / "gone").unlink()
    (store / "kept").write_text("more")

    after = seal.snapshot(store)

    assert nothing == {}
    assert seal.changed(before, before) == []
    assert {str(store / "gone"), str(store / "kept")} <= set(seal.changed(before, after))


def test_the_real_home_is_watched() -> None:
    assert Path(pwd.getpwuid(os.getuid()).pw_dir, ".uwf") in seal.default_stores()


def test_a_process_that_outlives_its_parent_is_found_by_its_home(tmp_path: Path) -> None:
    home = f"{tmp_path}/0/home"
    shell = subprocess.run(
        ["/bin/sh", "-c", "sleep 62 >/dev/null 2>&1 & echo $!"],
        env=os.environ | {"HOME": home},
        capture_output=True,
        check=True,
    )
    pid = int(shell.stdout)

    found = seal.survivors(tmp_path, grace_s=0)
    seal.end(pid)

    assert [(each, where) for each, (_, where) in found.items()] == [(pid, home)]
    assert seal.survivors(tmp_path, grace_s=5) == {}


def test_a_run_that_leaks_fails_and_says_what_and_where(tmp_path: Path) -> None:
    suite, home = tmp_path / "suite", tmp_path / "person"
    suite.mkdir()
    (home / ".uwf").mkdir(parents=True)
    (suite / "test_leaky.py").write_text(LEAKY)

    status, said = inner_run(suite, home=home)

    assert status == 1
    assert "test_leaky.py::test_that_keeps_a_process left process" in said
    assert "left ['kept-" in said
    assert f"the tests changed {home}/.uwf/surprise" in said
    assert seal.survivors(suite, grace_s=5) == {}


def test_golden_files_are_compared_and_only_written_when_asked(tmp_path: Path) -> None:
    files = tmp_path / "golden"
    files.mkdir()
    (files / "same.txt").write_text("as ever\n")
    (files / "other.txt").write_text("one\ntwo\n")
    (tmp_path / "test_golden.py").write_text(GOLDEN)

    status, said = inner_run(tmp_path, home=tmp_path)
    updated, _ = inner_run(tmp_path, "--update-golden", home=tmp_path)

    assert (status, updated) == (1, 0)
    assert "1 passed" in said
    assert "-two" in said
    assert "+three" in said
    assert "there is no tests/golden/deep/er.bin" in said
    assert (files / "other.txt").read_text() == "one\nthree\n"
    assert (files / "deep" / "er.bin").read_bytes() == b"\xff\r\n"
