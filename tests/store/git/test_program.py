import os
import pwd
import re
import socket
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import raising

from uwf_git.store.git import program as identity
from uwf_git.store.git.config import GitConfig
from uwf_git.store.git.program import (
    NoIdentity,
    ProgramFailed,
    Ran,
    agent_identity,
    clean_identity,
    find_committer,
    run_listener,
    run_program,
    set_user_config,
)

ENVIRON = {"PATH": os.defpath}


def test_program_is_given_its_input_and_gives_all_it_says() -> None:
    ran = run_program(["/bin/sh", "-c", "cat; echo no >&2; exit 3"], ENVIRON, given=b"yes")
    assert (ran.status, ran.stdout, ran.stderr) == (3, b"yes", b"no\n")


def test_program_sees_only_the_environment_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    assert run_program(["/bin/sh", "-c", 'printf "%s" "$SECRET"'], ENVIRON).stdout == b""


def test_program_that_takes_too_long_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(ProgramFailed, match=r"sleep was killed after 0\.1 s"):
        run_program(["sleep", "60"], ENVIRON, timeout_s=0.1)
    assert time.monotonic() - began < 30


def listen(script: str, *, cwd: Path, timeout_s: float = 30) -> Ran:
    argv = ["/bin/sh", "-c", script]
    return run_listener(argv, ENVIRON, given=b"told\n", cwd=str(cwd), timeout_s=timeout_s)


def test_background_child_of_a_listener_does_not_delay_the_return(tmp_path: Path) -> None:
    began = time.monotonic()
    ran = listen(f"sleep 60 & echo $! >{tmp_path}/pid", cwd=tmp_path)
    assert time.monotonic() - began < 30
    os.kill(int((tmp_path / "pid").read_text()), 9)
    assert ran.status == 0


def test_listener_that_takes_too_long_is_ended_with_all_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed, match=r"sh was killed after 0\.3 s"):
        listen(f"sleep 60 & echo $! >{tmp_path}/pid; wait", cwd=tmp_path, timeout_s=0.3)
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{pid}/fd/0"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_failure_of_git_config_is_reported(tmp_path: Path) -> None:
    broken = tmp_path / "config"
    broken.write_text("[broken\n")
    with pytest.raises(ProgramFailed, match="git config --global"):
        set_user_config({**os.environ, "GIT_CONFIG_GLOBAL": str(broken)}, "uwf.agent", "x")
    assert broken.read_text() == "[broken\n"


def test_missing_git_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed, match="not on the PATH"):
        set_user_config({"PATH": str(tmp_path), "HOME": str(tmp_path)}, "uwf.agent", "x")


# Identities; that git takes them is judged by git in interop/test_git_reads_us.py.

# As fsck wants it: a name, one space, an address without angle brackets, nothing else.
ACCEPTED = re.compile(rb"[^<>\n\0]*[^<>\n\0 ] <[^<>\n\0 ]+>")


@pytest.mark.parametrize(
    ("name", "email", "identity"),
    [
        ("C O Mitter", "c@example.com", "C O Mitter <c@example.com>"),
        ("Jürgen 山田", "j@example.com", "Jürgen 山田 <j@example.com>"),
        ("", "", "unknown <unknown>"),
        ("dev> <x", "a b<c>d", "dev x <abcd>"),
        ("O'Brien", "o'brien/jürgen@x.y", "O'Brien <o'brien/jürgen@x.y>"),
        ("marks", "a\u202eb\u2066@x", "marks <ab@x>"),
        (' "quoted", ', ".a.", "quoted <a>"),
        ("lone \ud800 one", "\ud800@x", "lone one <@x>"),
    ],
)
def test_names_are_cleaned(name: str, email: str, identity: str) -> None:
    assert clean_identity(name, email) == identity.encode()


@given(st.text(), st.text())
def test_whatever_it_is_called_it_is_an_identity(name: str, email: str) -> None:
    assert ACCEPTED.fullmatch(clean_identity(name, email))
    assert ACCEPTED.fullmatch(agent_identity(name, email))


@given(st.text(), st.text())
def test_cleaning_again_changes_nothing(name: str, email: str) -> None:
    cleaned, address = clean_identity(name, email).decode()[:-1].rsplit(" <", 1)
    assert clean_identity(cleaned, address) == clean_identity(name, email)


@pytest.mark.parametrize("mark", "\u061c\u200e\u200f\u2028\u202a\u202e\u2066\u2069")
def test_no_mark_of_direction_is_in_the_name_of_a_committer(mark: str) -> None:
    environ = {"GIT_COMMITTER_NAME": f"{mark}Eve{mark}vil", "GIT_COMMITTER_EMAIL": "e@x.y"}
    assert find_committer(GitConfig({}), environ).identity == b"Eve vil <e@x.y>"
    settings = GitConfig({"user.name": [f"Eve{mark}"], "user.email": ["e@x.y"]})
    assert find_committer(settings, {}).identity == b"Eve <e@x.y>"


def as_git_says(
    settings: dict[str, str], environ: dict[str, str], tmp_path: Path
) -> tuple[int, str]:
    """Ask git who commits; where it refuses its own guess, take the address out of its words."""
    config = tmp_path / "gitconfig"
    for name, value in settings.items():
        subprocess.run(["git", "config", "--file", config, name, value], check=True)
    asked = subprocess.run(
        ["git", "var", "GIT_COMMITTER_IDENT"],
        env={"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": str(config)}
        | {"GIT_CONFIG_NOSYSTEM": "1", **environ},
        capture_output=True,
        check=False,
        text=True,
    )
    guess = re.search(r"\(got '(.*?)(?:\.\(none\))?'\)", asked.stderr)
    return asked.returncode, guess[1] if guess else asked.stdout.rpartition(">")[0] + ">"


@pytest.mark.parametrize("email", [{}, {"EMAIL": "mail@x.y"}])
@pytest.mark.parametrize(
    "settings",
    [
        {"user.email": "u@x.y"},
        {"user.name": "Ada", "user.email": "u@x.y"},
        {"user.email": "4+github-actions[bot]@users.noreply.github.com"},
        {"user.name": "Ada", "committer.name": "Com", "committer.email": "c@x.y"},
        {"user.name": "Ada", "user.email": "u@x.y", "author.name": "A", "author.email": "a@x.y"},
    ],
    ids=str,
)
@pytest.mark.parametrize("variables", [{}, {"GIT_COMMITTER_NAME": "V"}], ids=str)
def test_the_committer_is_who_git_says(
    tmp_path: Path, settings: dict[str, str], variables: dict[str, str], email: dict[str, str]
) -> None:
    environ = email | variables
    found = find_committer(GitConfig({name: [value] for name, value in settings.items()}), environ)
    assert (0, found.identity.decode()) == as_git_says(settings, environ, tmp_path)
    assert not found.is_guess


def test_full_name_of_the_account_is_taken_as_git_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = ("ada", "x", 7, 7, " & Lovelace ,Room 1,,", "/", "/bin/sh")
    monkeypatch.setattr(pwd, "getpwuid", lambda _uid: pwd.struct_passwd(entry))
    found = find_committer(GitConfig({}), {"EMAIL": "ada@x.y", "USER": "other"})
    assert found.identity == b"Ada Lovelace <ada@x.y>"


@pytest.mark.parametrize(
    ("environ", "name"), [({"USER": "u"}, b"u"), ({"LOGNAME": "l"}, b"l"), ({}, b"unknown")]
)
def test_a_number_without_an_account_has_the_name_that_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], name: bytes
) -> None:
    monkeypatch.setattr(pwd, "getpwuid", raising(KeyError()))
    found = find_committer(GitConfig({}), environ)
    assert found.identity.startswith(name + b" <" + name + b"@")
    assert b"localhost" not in found.identity


@pytest.mark.parametrize(
    ("mail_name", "host", "canonical"),
    [
        ("[mail.example.com]\nmore\n", "h.example.com", "h.other.com"),
        (None, "[h.example.com]", "h.other.com"),
        ("\n", "h", "[h.example.com]"),
        (None, "[h]", "h"),
        (None, "[h]", None),
    ],
)
def test_the_host_has_the_name_that_git_finds(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mail_name: str | None,
    host: str,
    canonical: str | None,
) -> None:
    def look_up(*_args: object, **_options: object) -> list[tuple[int, int, int, str]]:
        if canonical is None:
            raise socket.gaierror
        return [(2, 1, 6, canonical)]

    if mail_name is not None:
        (tmp_path / "mailname").write_text(mail_name)
    monkeypatch.setattr(identity, "_MAIL_NAME", str(tmp_path / "mailname"))
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    found = identity.find_host.__wrapped__()
    # The expected one of the names is in brackets.
    assert (found[0], found[-1]) == ("[", "]")


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({}, "user.name"),
        ({"user.name": "Ada"}, "user.email"),
        ({"user.email": "u@x.y"}, "user.name"),
        ({"committer.name": "Ada", "user.email": "u@x.y"}, None),
    ],
    ids=str,
)
def test_nothing_is_guessed_if_git_may_not(
    tmp_path: Path, settings: dict[str, str], missing: str | None
) -> None:
    settings = {"user.useConfigOnly": "true", **settings}
    config = GitConfig({name.lower(): [value] for name, value in settings.items()})
    status, told = as_git_says(settings, {"EMAIL": "mail@x.y"}, tmp_path)
    if missing is None:
        assert (status, told) == (0, find_committer(config, {}).identity.decode())
        return
    assert status != 0
    with pytest.raises(NoIdentity, match=f"{missing} is not set"):
        find_committer(config, {"EMAIL": "mail@x.y"})
