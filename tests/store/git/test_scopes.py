"""All scopes of git's settings: what `git config --list -z` says is what we read."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from programs import write_program
from refusing import refuses

from uwf_git.store.git.config import (
    BadConfig,
    GitConfig,
    is_shared,
    read_user_config,
    set_config,
    share_folder,
)
from uwf_git.store.store import create_store, open_store

Environ = dict[str, str]


@pytest.fixture
def environ() -> Environ:
    """Return the environment of a user with a home, whose git has the usual places."""
    names = ("HOME", "PATH", "TMPDIR", "GIT_CONFIG_NOSYSTEM")
    return {name: os.environ[name] for name in names}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Return a repository in ~/work."""
    path = Path(os.environ["HOME"], "work", "store.git")
    create_store(str(path))
    return path


Settings = dict[str, list[str]]


def as_git_sees(environ: Mapping[str, str], git_dir: Path | str = "/dev/null") -> Settings:
    """Ask the git of *environ* for all settings."""
    argv = ["git", f"--git-dir={git_dir}", "config", "--list", "-z"]
    path = shutil.which("git", path=environ["PATH"])
    listed = subprocess.run(
        argv, executable=path, env=dict(environ), capture_output=True, check=True
    ).stdout
    found: Settings = {}
    for item in listed.decode(errors="surrogateescape").split("\0")[:-1]:
        name, newline, value = item.partition("\n")
        found.setdefault(name, []).append(value if newline else "true")
    return found


def as_we_see(environ: Mapping[str, str], git_dir: Path) -> Settings:
    return open_store(str(git_dir), environ=environ).config.values


def write(path: str | Path, text: str) -> str:
    """Write a config file, with its folder."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    return str(path)


@pytest.mark.parametrize("ignored", [None, "1", "0", ""])
@pytest.mark.parametrize(
    "places",
    [
        {},
        {"XDG_CONFIG_HOME": "X"},
        {"XDG_CONFIG_HOME": "X", "HOME": ""},
        {"HOME": ""},
        {"GIT_CONFIG_GLOBAL": "G"},
        {"GIT_CONFIG_GLOBAL": ""},
        {"GIT_CONFIG_SYSTEM": ""},
    ],
    ids=str,
)
def test_the_files_of_system_and_user_are_where_git_finds_them(
    tmp_path: Path, repo: Path, environ: Environ, places: Environ, ignored: str | None
) -> None:
    for place in ("H/.config/git/config", "H/.gitconfig", "X/git/config", "G", "S"):
        write(tmp_path / place, f"[uwf]\n\tfrom = {place}\n\tagent\n")
    set_config(str(repo / "config"), "uwf.from", "store")
    del environ["GIT_CONFIG_NOSYSTEM"]
    environ |= {"HOME": "H", "GIT_CONFIG_SYSTEM": "S"} | places
    for name in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        if environ.get(name):
            environ[name] = str(tmp_path / environ[name])
    if ignored is not None:
        environ["GIT_CONFIG_NOSYSTEM"] = ignored
    assert as_we_see(environ, repo) == as_git_sees(environ, repo)
    assert read_user_config(environ).values == as_git_sees(environ)


@pytest.mark.parametrize(
    "condition",
    [
        "gitdir:~/work/",
        "gitdir:~/play/",
        "gitdir/i:~/WORK/**",
        "onbranch:main",
        "onbranch:other",
        "hasconfig:remote.*.url:https://work.example.com/**",
    ],
)
@pytest.mark.parametrize("place", ["user", "store", "included"])
def test_a_conditional_include_holds_where_it_holds_for_git(
    repo: Path, environ: Environ, condition: str, place: str
) -> None:
    home = environ["HOME"]
    set_config(str(repo / "config"), "remote.origin.url", "https://work.example.com/x")
    write(f"{home}/at-work", "[user]\n\tname = Work\n[commit]\n\tgpgsign\n")
    text = f'[user]\n\tname = Private\n[includeIf "{condition}"]\n\tpath = {home}/at-work\n'
    if place == "store":
        write(repo / "config", (repo / "config").read_text() + text)
    elif place == "user":
        write(f"{home}/.gitconfig", text)
    else:
        write(f"{home}/more", text)
        write(f"{home}/.gitconfig", "[include]\n\tpath = more\n")
    assert as_we_see(environ, repo) == as_git_sees(environ, repo)
    assert read_user_config(environ).values == as_git_sees(environ)


def test_settings_of_a_worktree_are_read(repo: Path, environ: Environ) -> None:
    set_config(str(repo / "config"), "extensions.worktreeConfig", "true")
    write(repo / "config.worktree", "[user]\n\tname = Here\n")
    assert as_we_see(environ, repo) == as_git_sees(environ, repo)
    assert as_we_see(environ, repo)["user.name"] == ["Here"]


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_git_elsewhere_has_another_system_file(
    tmp_path: Path, repo: Path, environ: Environ, *, is_linked: bool
) -> None:
    system = write(tmp_path / "opt" / "etc" / "gitconfig", "[user]\n\tname = System\n")
    environ["PATH"] = f"{tmp_path}/bin"
    git = put_git(tmp_path / "opt" / "bin", f'GIT_CONFIG_SYSTEM={system} exec {REAL} "$@"')
    if is_linked:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "git").symlink_to(git)
    else:
        environ["PATH"] = str(git.parent)
    del environ["GIT_CONFIG_NOSYSTEM"]
    assert as_we_see(environ, repo) == as_git_sees(environ, repo)
    assert as_we_see(environ, repo)["user.name"] == ["System"]


@pytest.mark.parametrize("path", [None, ""])
def test_the_system_file_of_this_machine_is_read_with_and_without_git(
    repo: Path, environ: Environ, path: str | None
) -> None:
    del environ["GIT_CONFIG_NOSYSTEM"]
    expected = as_git_sees(environ, repo)
    if path is not None:
        environ["PATH"] = path
    assert as_we_see(environ, repo) == expected


def test_a_file_below_the_prefix_of_git_is_asked_of_git(repo: Path, environ: Environ) -> None:
    set_config(str(repo / "config"), "include.path", "%(prefix)/etc/nowhere")
    assert as_we_see(environ, repo) == as_git_sees(environ, repo)
    environ["PATH"] = ""
    with refuses("git-settings-unread", match="below git's prefix"):
        as_we_see(environ, repo)


REAL = shutil.which("git")


def put_git(folder: Path, script: str) -> Path:
    """Make a program `git`."""
    folder.mkdir(parents=True)
    git = folder / "git"
    write_program(git, script)
    return git


def test_ordinary_settings_are_read_without_a_process(
    tmp_path: Path, repo: Path, environ: Environ
) -> None:
    log = tmp_path / "asked"
    environ["PATH"] = str(put_git(tmp_path / "bin", f'echo >> {log}; exec {REAL} "$@"').parent)
    home = environ["HOME"]
    write(f"{home}/more", "[user]\n\tname = Ada\n")
    write(f"{home}/.gitconfig", "[include]\n\tpath = more\n[uwf]\n\tagent = a\n")
    assert as_we_see(environ, repo)["user.name"] == ["Ada"]
    assert read_user_config(environ).get("user.name") == "Ada"
    assert not log.exists()
    environ["GIT_CONFIG_COUNT"] = "1"
    with refuses("git-settings-unread"):
        as_we_see(environ, repo)
    assert log.exists()


def test_a_broken_file_that_git_reads_is_named(repo: Path, environ: Environ) -> None:
    broken = write(f"{environ['HOME']}/broken", "[user\n")
    write(f"{environ['HOME']}/.gitconfig", '[includeIf "gitdir:~/work/"]\n\tpath = broken\n')
    with refuses("git-settings-unread", match=f"bad config line 1 in file {broken}"):
        as_we_see(environ, repo)


def test_git_that_reads_other_settings_than_those_of_the_store_is_refused(
    repo: Path, environ: Environ, tmp_path: Path
) -> None:
    environ |= {"GIT_CONFIG_PARAMETERS": "'a.b=c'"}
    environ["PATH"] = str(put_git(tmp_path / "bin", "exit 0").parent)
    with refuses("git-settings-unread", match=f"does not take {repo} for a repository"):
        as_we_see(environ, repo)


def test_a_git_that_cannot_be_started_is_named(
    tmp_path: Path, repo: Path, environ: Environ
) -> None:
    git = put_git(tmp_path / "bin", "")
    git.write_text("#!/nowhere/at/all\n")
    environ |= {"GIT_CONFIG_PARAMETERS": "'a.b=c'", "PATH": str(git.parent)}
    with refuses("git-settings-unread", match="could not be started"):
        as_we_see(environ, repo)


def test_a_broken_file_of_the_user_is_named(tmp_path: Path) -> None:
    path = tmp_path / "gitconfig"
    path.write_text("[broken")
    with pytest.raises(BadConfig, match=str(path)):
        read_user_config({"GIT_CONFIG_GLOBAL": str(path), "GIT_CONFIG_NOSYSTEM": "1"})


Git = Callable[..., str]


def config(value: str | None) -> GitConfig:
    return GitConfig({} if value is None else {"core.sharedrepository": [value]})


def test_setting_is_read_as_git_reads_it() -> None:
    for value, shared in [
        (None, False),
        *((word, False) for word in ("umask", "false", "0", "", "0600", "0644", "nonsense", "09")),
        *((word, True) for word in ("group", "Group", "true", "1", "all", "world", "0660", "0664")),
    ]:
        assert is_shared(config(value)) is shared


def test_folder_becomes_what_git_makes(tmp_path: Path, git: Git) -> None:
    git("init", "-q", "--bare", "--shared", "git.git", cwd=tmp_path)
    git("init", "-q", "--bare", "ours.git", cwd=tmp_path)

    share_folder(str(tmp_path / "ours.git"))

    for path in ("", "objects", "refs/heads", "HEAD", "config", "hooks"):
        theirs = (tmp_path / "git.git" / path).stat().st_mode
        assert (tmp_path / "ours.git" / path).stat().st_mode == theirs, path
