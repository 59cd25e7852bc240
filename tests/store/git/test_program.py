import os
import pwd
import re
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases
from refusing import raising

from uwf_git.store.durable import find_user_file
from uwf_git.store.git import program as identity
from uwf_git.store.git.config import GitConfig
from uwf_git.store.git.program import (
    Kept,
    NoIdentity,
    Place,
    ProgramFailed,
    Ran,
    agent_identity,
    clean_identity,
    fenced,
    find_committer,
    find_place,
    keep_settings,
    list_uncommitted,
    read_settings,
    run_fenced,
    run_listener,
    run_program,
    set_user_config,
)

IDENTITIES = Path(__file__).parent / "made_up" / "identities.json"


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


def test_names_are_cleaned(golden: Callable[[str, str], None]) -> None:
    answers = {"clean_identity": lambda *case: clean_identity(*case).decode()}
    golden("store/identities.txt", tell_cases(IDENTITIES, answers))


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


# A git of ours in the repository of a project: what counts there, and what comes back.

Git = Callable[..., str]


@pytest.fixture
def project(tmp_path: Path, git: Git) -> Path:
    """Return a repository with one commit, and a setting that it includes."""
    place = tmp_path / "project"
    git("init", "--quiet", str(place), cwd=tmp_path)
    (place / "file").write_text("x\n")
    git("add", "--all", cwd=place)
    git("commit", "--quiet", "-m", "x", cwd=place)
    (place / ".git" / "more").write_text('[filter "a.b"]\n\tclean = "say \\"x\\"; y\\\\n"\n')
    git("config", "include.path", "more", cwd=place)
    return place


def config(place: Place, *words: str) -> str:
    return os.fsdecode(run_fenced(os.environ, place, "config", *words).stdout).strip()


def test_settings_that_were_kept_count_for_their_repository_alone(
    project: Path, tmp_path: Path, git: Git
) -> None:
    kept, own = str(tmp_path / "of" / "thread"), str(project / ".git")
    keep_settings(kept, str(project))

    assert os.stat(tmp_path / "of").st_mode & 0o077 == 0  # tokens are in it
    git("config", "include.path", "nowhere", cwd=project)
    git("config", "core.autocrlf", "input", cwd=project)
    git("config", "core.editor", "evil", cwd=project)

    at = Place(own, kept=read_settings(kept))

    assert config(at, "filter.a.b.clean") == 'say "x"; y\\n'
    assert config(at, "core.autocrlf") == "input"
    assert config(at, "core.editor") == config(at, "include.path") == ""
    assert config(at._replace(kept=Kept("elsewhere", at.kept.text)), "filter.a.b.clean") == ""
    assert read_settings(str(tmp_path / "none")) == read_settings(None) == Kept()
    for left in ("", "\0\0", "5", "[1]"):
        (tmp_path / "left").write_text(left)
        assert read_settings(str(tmp_path / "left")) == Kept()


def test_a_linked_worktree_keeps_the_settings_of_its_project(
    project: Path, tmp_path: Path, git: Git
) -> None:
    git("worktree", "add", "--quiet", "--detach", "../beside", cwd=project)
    keep_settings(str(tmp_path / "kept"), str(tmp_path / "beside"))
    assert read_settings(str(tmp_path / "kept")).repository == str(project / ".git")


def test_refs_and_objects_are_those_of_the_project(project: Path, git: Git) -> None:
    own = str(project / ".git")
    git("pack-refs", "--all", cwd=project)
    with fenced(os.environ, Place(own)) as environment:
        folder = Path(environment["GIT_DIR"])
        assert folder.parent == Path(find_user_file(own, os.environ, "git-dirs") or "")
        # As a filter keeps what it has taken out of a file.
        (folder / "large").mkdir()
        (folder / "large" / "x").touch()
    assert (project / ".git" / "large" / "x").exists()

    assert not run_fenced(os.environ, Place(own), "update-ref", "refs/uwf/x", "HEAD").status
    assert not run_fenced(os.environ, Place(own), "pack-refs", "--all").status
    assert not (project / ".git" / "packed-refs").is_symlink()
    assert git("rev-parse", "refs/uwf/x", cwd=project) == git("rev-parse", "HEAD", cwd=project)


def test_what_was_not_used_for_a_day_goes(project: Path) -> None:
    own = str(project / ".git")
    folder = Path(find_user_file(own, os.environ, "git-dirs") or "")
    for name in ("old", "young"):
        (folder / name / "info").mkdir(parents=True)
    os.utime(folder / "old", (1, 1))
    # As what another process takes away while the folder is listed.
    (folder / "going").symlink_to("gone")

    with fenced(os.environ, Place(own)) as environment:
        used = Path(environment["GIT_DIR"])
        (used / "info" / "still").touch()
        os.utime(used, (1, 1))
    with fenced(os.environ, Place(own)) as environment:
        assert environment["GIT_DIR"] == str(used)

    assert sorted(os.listdir(folder)) == sorted([used.name, "going", "young"])
    assert used.stat().st_mtime > 1
    assert (used / "info" / "still").exists()


def test_what_submodules_say_is_not_looked_for_is_not(
    project: Path, tmp_path: Path, git: Git
) -> None:
    files = ("-c", "protocol.file.allow=always")
    for name in ("one", "two", "three"):
        git(*files, "submodule", "--quiet", "add", str(project / ".git"), name, cwd=project)
    git("commit", "--quiet", "-m", "submodules", cwd=project)
    (project / "one" / "new").touch()
    (project / "two" / "file").write_text("other\n")
    (project / "three" / "file").write_text("other\n")
    # Which leads to the outer one again.
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},none", cwd=project)
    git("commit", "--quiet", "-m", "link", cwd=project)
    (project / "none" / ".git").mkdir(parents=True)
    place = find_place(os.environ, str(project))
    assert isinstance(place, Place)
    assert list_uncommitted(os.environ, place) == ["one", "three", "two"]

    (project / "none" / ".git").rmdir()
    git("config", "submodule.one.ignore", "untracked", cwd=project)
    git("config", "--file=.gitmodules", "submodule.two.ignore", "dirty", cwd=project)
    git("commit", "--quiet", "-am", "ignored", cwd=project)
    assert list_uncommitted(os.environ, place) == ["three"]


def test_what_is_no_repository_is_told(project: Path, tmp_path: Path) -> None:
    told = find_place(os.environ, str(tmp_path))
    assert isinstance(told, str)
    assert "not a git repository" in told
    # An agent may have made it.
    (project / "empty" / ".git").mkdir(parents=True)
    found = find_place(os.environ, str(project / "empty"))
    assert isinstance(found, Place)
    assert found.worktree == str(project)
    with pytest.raises(ProgramFailed, match="git was not started"):
        run_fenced(os.environ, Place(str(tmp_path / "gone")), "status")
