"""git config: what git writes we read, what we write git reads, what people wrote stays."""

import itertools
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from programs import write_program
from refusing import refuses
from store.conftest import Git
from store.killing import dies_at

from uwf_git.store.git.config import (
    BadConfig,
    GitConfig,
    add_config,
    edit_config,
    is_shared,
    parse_size,
    read_config_file,
    read_user_config,
    remove_section,
    remove_values,
    scan_config,
    set_config,
    share_folder,
)
from uwf_git.store.store import create_store, open_store

# Everything an argument can hold, and a config file too.
values = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)


TREACHEROUS = [
    "", " ", "\t", "a\nb", "\n", "\r", "a\r\n", 'say "hi"', "\\", "\\n", "a\\", '\\"', "a # b",
    " lead", "trail ", "tab\there", "\x0b\x0c\x1c\x85\u2028\u2029", "é😀", "[section]", "a = b",
    "; c", "\b", "'", "$HOME `id`", "x" * 5000,
]  # fmt: skip


@pytest.fixture
def config(tmp_path: Path) -> str:
    """Return a path where a config may be."""
    return str(tmp_path / "config")


def as_git_sees(path: str | Path) -> dict[str, list[str]]:
    """Ask git for every value."""
    command = ["git", "config", "--file", path, "--includes", "--null", "--list"]
    return values_of(subprocess.run(command, capture_output=True, check=True).stdout)


def values_of(listed: bytes) -> dict[str, list[str]]:
    """Read what git lists."""
    found: dict[str, list[str]] = {}
    for item in listed.decode(errors="surrogateescape").split("\0")[:-1]:
        name, newline, value = item.partition("\n")
        found.setdefault(name, []).append(value if newline else "true")
    return found


def as_we_see(path: str | Path) -> dict[str, list[str]]:
    return read_config_file(str(path)).values


@pytest.mark.parametrize("value", TREACHEROUS, ids=ascii)
def test_a_value_that_we_set_is_read_by_git_and_by_us(config: str, value: str) -> None:
    set_config(config, "uwf.agent", value)
    assert as_git_sees(config) == as_we_see(config) == {"uwf.agent": [value]}


@pytest.mark.parametrize(
    "before",
    [
        "",
        "[uwf]\n",
        "[uwf]",
        "[core]\n\tbare = true\n[uwf]\n\tx=1",
        "[uwf]\n\n[core]\n\tbare = true\n",
        "[uwf.agent]\n\tx = 1\n",
        '[core]\n\tx = "a\\\n[uwf]"\n',
        "[core]\n\tx = a\\",
        "[core]\n\tx = \\\\\n[uwf]\n\tx = 1\n[core]\n\ty = 2\n",
        "[uwf]\n\tx = 1\n\t# \\\n[core]\n\tx = 1\n",
        '[uwf]\n\tx = "a # \\\n\tb"\n[core]\n\tx = 1\n',
        "[UWF]\n\tAGENT\n[uwf]\n\tAgent = 2\n",
        "[core]\r\n\tx = 1\r\n",
    ],
)
def test_git_finds_the_new_value_and_every_old_one(config: str, before: str) -> None:
    Path(config).write_text(before)
    old = as_git_sees(config)
    add_config(config, "uwf.added", "a")
    set_config(config, "uwf.agent", "b")
    expected = {**old, "uwf.added": ["a"], "uwf.agent": ["b"]}
    assert as_git_sees(config) == expected
    assert as_we_see(config) == expected


def test_bytes_that_are_no_text_are_kept(config: str) -> None:
    Path(config).write_bytes(b"[uwf]\n\tname = \xff\xfe\n")
    set_config(config, "uwf.other", os.fsdecode(b"\xfd"))
    assert Path(config).read_bytes() == b'[uwf]\n\tname = \xff\xfe\n\tother = "\xfd"\n'
    assert as_git_sees(config) == as_we_see(config)


def test_a_value_that_no_file_can_hold_is_refused(config: str) -> None:
    with refuses("unfit-value", match=r"uwf\.agent"):
        set_config(config, "uwf.agent", "a\0b")
    assert not os.path.exists(config)


@pytest.mark.parametrize("real", ["config", "linked"])
def test_file_is_as_it_was_also_behind_a_link(config: str, real: str) -> None:
    path = Path(config).with_name(real)
    path.touch()
    path.chmod(0o600)
    if real == "linked":
        Path(config).symlink_to(path)
    set_config(config, "uwf.agent", "a")
    assert stat.S_IMODE(os.stat(config).st_mode) == 0o600
    assert os.path.islink(config) == (real == "linked")
    assert read_config_file(str(path)).get("uwf.agent") == "a"


def test_what_a_file_includes_is_read_where_it_is_included(tmp_path: Path) -> None:
    (tmp_path / "more").write_text("[uwf]\n\tagent = included\n\tonly = there\n")
    path = tmp_path / "config"
    path.write_text("[uwf]\n\tagent = before\n[include]\n\tpath = more\n[uwf]\n\tagent = after\n")
    assert as_we_see(path) == as_git_sees(path)
    assert read_config_file(str(path)).get("uwf.agent") == "after"
    path.write_text(f"[include]\n\tpath = nowhere\n\tpath\n\tpath = {tmp_path}/more\n")
    assert read_config_file(str(path)).get("uwf.agent") == "included"


def test_file_that_includes_itself_is_refused(config: str) -> None:
    Path(config).write_text("[include]\n\tpath = config\n")
    with pytest.raises(BadConfig, match="included too deeply, or by itself"):
        read_config_file(config)


def test_includes_that_multiply_are_refused(tmp_path: Path) -> None:
    for depth in range(10):
        names = "".join(f"\tpath = {depth + 1}\n" for _ in range(4))
        (tmp_path / str(depth)).write_text(f"[include]\n{names}")
    (tmp_path / "10").write_text("")

    with pytest.raises(BadConfig, match="too much is included"):
        read_config_file(str(tmp_path / "0"))


@pytest.mark.parametrize("included", ["/dev/zero", "pipe", "long"])
def test_included_file_that_never_ends_is_refused(config: str, included: str) -> None:
    folder = Path(config).parent
    os.mkfifo(folder / "pipe")
    with open(folder / "long", "wb") as file:
        file.truncate(15 * 1024**4)
    Path(config).write_text(f"[include]\n\tpath = {included}\n")

    with pytest.raises(BadConfig, match=f"{included} is not a git config file: it "):
        read_config_file(config)
    Path(config).unlink()
    os.symlink(included, config)
    with pytest.raises(BadConfig, match=" is not a git config file: it "):
        set_config(config, "a.b", "c")


def test_folder_or_unreadable_file_is_no_config(config: str) -> None:
    Path(config).write_text("[include]\n\tpath = .\n")
    with pytest.raises(BadConfig, match="it is not a regular file"):
        read_config_file(config)
    Path(config).unlink()
    os.symlink("config", config)
    with pytest.raises(BadConfig, match="it cannot be read"):
        read_config_file(config)


@given(
    content=st.binary(max_size=60)
    | st.text(st.sampled_from('[]"\\#;= \n\ta.'), max_size=30).map(str.encode)
)
def test_whatever_is_in_the_file_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("config") / "config"
    path.write_bytes(content)
    try:
        assert isinstance(as_we_see(path), dict)
    except BadConfig as error:
        assert error.message.startswith(f"{path} is not a git config file: ")  # noqa: PT017 - as below
        assert "\n" not in error.message  # noqa: PT017 - either of two answers is right


@pytest.mark.parametrize("edit", [set_config, add_config])
def test_a_change_killed_anywhere_is_made_or_not_begun(
    config: str, git: Git, edit: Callable[[str, str, str], None]
) -> None:
    Path(config).write_text("[core]\n\tbare = true\n# kept\n")
    for moment in itertools.count(1):
        before = as_we_see(config)
        if not dies_at(moment, lambda: edit(config, "uwf.agent", "the same")):
            break
        after = as_we_see(config)
        assert after in (before, expected(before, edit))
        edit(config, "uwf.agent", "the same")
        assert as_we_see(config) == expected(after, edit)
        assert not os.path.exists(f"{config}.lock")
    git("config", "--file", config, "uwf.last", "1", cwd=Path(config).parent)
    assert "# kept\n" in Path(config).read_text()
    assert moment > 8


def expected(before: dict[str, list[str]], edit: Any) -> dict[str, list[str]]:
    old = before.get("uwf.agent", []) if edit is add_config else []
    return {**before, "uwf.agent": [*old, "the same"]}


ADD = """
import sys
from uwf_git.store.git.config import add_config
for time in range(5):
    add_config(sys.argv[1], "uwf.trustedAgent", f"{sys.argv[2]}-{time}")
"""


def test_parallel_additions_lose_no_value(config: str) -> None:
    adding = [subprocess.Popen([sys.executable, "-c", ADD, config, str(who)]) for who in range(6)]
    assert [process.wait() for process in adding] == [0] * 6
    found = read_config_file(config).get_all("uwf.trustedAgent")
    assert sorted(found) == sorted(f"{who}-{time}" for who in range(6) for time in range(5))


def test_size_has_git_s_suffixes() -> None:
    sizes = [parse_size(text) for text in ("0", "512", "64k", "2M", "1g")]
    assert sizes == [0, 512, 65536, 2 * 1024**2, 1024**3]


@pytest.mark.parametrize("text", ["", "k", "-1", "1.5", "64kb", "1 k", "٣"])
def test_anything_else_is_none(text: str) -> None:
    assert parse_size(text) is None


# The grammar of git config files; git itself is the judge.


texts = st.text(st.sampled_from('[]"\\#;= \n\r\tab.-1é\x0b'), max_size=25)
LINES = r"""
[uwf]
[uwf "a.B"]
[uwf "q\"\\"]
[UWF.Sub]
[core] bare
[a]b=1 ; c
    agent = a
    Agent="x # y" z
agent
agent = a\
  more \
# c \
; c
x = C:\\
x = "open\
closed"
x-1 = \n\t\b\\\"
x = a	b  c
x = "" a
[broken
[uwf "a]
x = "open
x = \q
1x = a
x y = 1
= 1
[ uwf ]
[]
[ "a"]
[.]
[uwf"a"]
"""
lines = st.sampled_from([*LINES.split("\n"), "\t", "\ufeff", "\r"])
files = texts | st.lists(lines, max_size=7).map("\n".join)


def as_git_reads(path: Path, text: str) -> list[tuple[str, str | None]] | None:
    """Let git read *text*; return None if git refuses it."""
    path.write_bytes(text.encode())
    command = ["git", "config", "--file", str(path), "--no-includes", "--null", "--list"]
    ran = subprocess.run(command, capture_output=True, check=False)
    if ran.returncode:
        return None
    found: list[tuple[str, str | None]] = []
    for item in ran.stdout.decode().split("\0")[:-1]:
        name, line_end, value = item.partition("\n")
        found.append((name, value if line_end else None))
    return found


def as_we_read(text: str) -> list[tuple[str, str | None]] | None:
    try:
        items = list(scan_config(text))
    except ValueError:
        return None
    return [(item.name, item.value) for item in items if item.kind == "setting"]


def folded(found: list[tuple[str, str | None]] | None) -> list[tuple[str, str | None]] | None:
    """Leave out which blanks there are within a value: older gits make spaces of them."""
    return found and [(name, value and re.sub("[\t\r]", " ", value)) for name, value in found]


@settings(max_examples=150)
@given(text=files)
@example(text="[uwf]\n\tx = 1 ; \\\n\ty = 2\n")
@example(text='[uwf]\n\tx = "a # \\\n\tb"\n')
@example(text="a = 1\n")
@example(text="[]\na = 1\n")
@example(text="[a]\n\tb = \x0b\x0c\n")
@example(text="a = 1\r1\n")
def test_we_read_what_git_reads(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("config") / "config"
    assert folded(as_we_read(text)) == folded(as_git_reads(path, text))


@settings(max_examples=60)
@given(text=files, keep=st.booleans(), name=st.sampled_from(["uwf.agent", "uwf.a.B.x", "new.x"]))
def test_git_reads_what_we_change_and_finds_the_rest_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, text: str, name: str, *, keep: bool
) -> None:
    path = tmp_path_factory.mktemp("config") / "config"
    before = as_git_reads(path, text)
    if before is None:
        with pytest.raises(ValueError, match=r"^line \d+ has "):
            edit_config(text, name, "new", keep=keep)
        return
    after = as_git_reads(path, edit_config(text, name, "new", keep=keep))
    old = [value for found, value in before if found == name]
    assert after is not None
    assert [value for found, value in after if found == name] == [*(old if keep else []), "new"]
    assert [each for each in after if each[0] != name] == [
        each for each in before if each[0] != name
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[uwf]\n\tx = "n"\n'),
        ("[uwf]", '[uwf]\n\tx = "n"\n'),
        ("[uwf] # c", '[uwf] # c\n\tx = "n"\n'),
        ("[uwf]\n\n[b]\n", '[uwf]\n\tx = "n"\n\n[b]\n'),
        ("[uwf] X = o\n\ty = 1\n", '[uwf]\n\ty = 1\n\tx = "n"\n'),
        ("[uwf]\n\tx = o \\\n  p\n# c\n", '[uwf]\n# c\n\tx = "n"\n'),
        ("[b]\n\ty = \\", '[b]\n\ty = \\\n\n[uwf]\n\tx = "n"\n'),
    ],
)
def test_a_setting_goes_to_the_end_of_its_section(before: str, after: str) -> None:
    assert edit_config(before, "uwf.x", "n", keep=False) == after


def test_a_section_is_removed_wherever_it_stands_and_its_comments_stay() -> None:
    text = (
        '[core]\n\tbare = true\n[Remote "a"]\n\turl = x\n\t# mine\n\tfetch = y\n'
        '[remote "A"]\n\turl = other\n[remote "a"] push = z\n[remote]\n\tx = y\n'
    )
    assert remove_section(text, "remote.a") == (
        '[core]\n\tbare = true\n\t# mine\n[remote "A"]\n\turl = other\n[remote]\n\tx = y\n'
    )
    assert remove_section(text, "remote.b") == text


@given(texts, st.sets(st.sampled_from(["a", "", "true", "1"]), max_size=2))
def test_values_that_are_removed_are_gone_and_all_others_stay(text: str, values: set[str]) -> None:
    text = f"[a]b=1\n\tb = a ; why\n[A]\nB\n{text}"
    try:
        before = [item for item in scan_config(text) if item.kind == "setting"]
    except ValueError:
        return
    after = [
        item for item in scan_config(remove_values(text, "a.B", values)) if item.kind == "setting"
    ]
    left = [(item.name, item.value) for item in before]
    for value in values:
        left = [each for each in left if each[0] != "a.b" or (each[1] or "true") != value]
        if value == "true":
            left = [each for each in left if each != ("a.b", None)]
        if value == "":
            left = [each for each in left if each != ("a.b", "")]
    assert [(item.name, item.value) for item in after] == left


# All scopes of git's settings: what `git config --list -z` says is what we read.

Environ = dict[str, str]


@pytest.fixture
def environ() -> Environ:
    """Return the environment of a user with a home, whose git has the usual places."""
    return {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR", "GIT_CONFIG_NOSYSTEM")}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Return a repository in ~/work."""
    path = Path(os.environ["HOME"], "work", "store.git")
    create_store(str(path))
    return path


Settings = dict[str, list[str]]


def as_git_sees_scopes(environ: Mapping[str, str], git_dir: Path | str = "/dev/null") -> Settings:
    """Ask the git of *environ* for all settings."""
    argv = ["git", f"--git-dir={git_dir}", "config", "--list", "-z"]
    path = shutil.which("git", path=environ["PATH"])
    told: Mapping[str, Any] = {"executable": path, "env": environ, "capture_output": True}
    return values_of(subprocess.run(argv, check=True, **told).stdout)


def as_we_see_scopes(environ: Mapping[str, str], git_dir: Path) -> Settings:
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
    assert as_we_see_scopes(environ, repo) == as_git_sees_scopes(environ, repo)
    assert read_user_config(environ).values == as_git_sees_scopes(environ)


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
    assert as_we_see_scopes(environ, repo) == as_git_sees_scopes(environ, repo)
    assert read_user_config(environ).values == as_git_sees_scopes(environ)


def test_settings_of_a_worktree_are_read(repo: Path, environ: Environ) -> None:
    set_config(str(repo / "config"), "extensions.worktreeConfig", "true")
    write(repo / "config.worktree", "[user]\n\tname = Here\n")
    assert as_we_see_scopes(environ, repo) == as_git_sees_scopes(environ, repo)
    assert as_we_see_scopes(environ, repo)["user.name"] == ["Here"]


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
    assert as_we_see_scopes(environ, repo) == as_git_sees_scopes(environ, repo)
    assert as_we_see_scopes(environ, repo)["user.name"] == ["System"]


@pytest.mark.parametrize("path", [None, ""])
def test_the_system_file_of_this_machine_is_read_with_and_without_git(
    repo: Path, environ: Environ, path: str | None
) -> None:
    del environ["GIT_CONFIG_NOSYSTEM"]
    expected = as_git_sees_scopes(environ, repo)
    if path is not None:
        environ["PATH"] = path
    assert as_we_see_scopes(environ, repo) == expected


def test_a_file_below_the_prefix_of_git_is_asked_of_git(repo: Path, environ: Environ) -> None:
    set_config(str(repo / "config"), "include.path", "%(prefix)/etc/nowhere")
    assert as_we_see_scopes(environ, repo) == as_git_sees_scopes(environ, repo)
    environ["PATH"] = ""
    with refuses("git-settings-unread", match="below git's prefix"):
        as_we_see_scopes(environ, repo)


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
    assert as_we_see_scopes(environ, repo)["user.name"] == ["Ada"]
    assert read_user_config(environ).get("user.name") == "Ada"
    assert not log.exists()
    environ["GIT_CONFIG_COUNT"] = "1"
    with refuses("git-settings-unread"):
        as_we_see_scopes(environ, repo)
    assert log.exists()


def test_a_broken_file_that_git_reads_is_named(repo: Path, environ: Environ) -> None:
    broken = write(f"{environ['HOME']}/broken", "[user\n")
    write(f"{environ['HOME']}/.gitconfig", '[includeIf "gitdir:~/work/"]\n\tpath = broken\n')
    with refuses("git-settings-unread", match=f"bad config line 1 in file {broken}"):
        as_we_see_scopes(environ, repo)


def test_git_that_reads_other_settings_than_those_of_the_store_is_refused(
    repo: Path, environ: Environ, tmp_path: Path
) -> None:
    environ |= {"GIT_CONFIG_PARAMETERS": "'a.b=c'"}
    environ["PATH"] = str(put_git(tmp_path / "bin", "exit 0").parent)
    with refuses("git-settings-unread", match=f"does not take {repo} for a repository"):
        as_we_see_scopes(environ, repo)


def test_a_git_that_cannot_be_started_is_named(
    tmp_path: Path, repo: Path, environ: Environ
) -> None:
    git = put_git(tmp_path / "bin", "")
    git.write_text("#!/nowhere/at/all\n")
    environ |= {"GIT_CONFIG_PARAMETERS": "'a.b=c'", "PATH": str(git.parent)}
    with refuses("git-settings-unread", match="could not be started"):
        as_we_see_scopes(environ, repo)


def test_a_broken_file_of_the_user_is_named(tmp_path: Path) -> None:
    path = tmp_path / "gitconfig"
    path.write_text("[broken")
    with pytest.raises(BadConfig, match=str(path)):
        read_user_config({"GIT_CONFIG_GLOBAL": str(path), "GIT_CONFIG_NOSYSTEM": "1"})


def test_setting_is_read_as_git_reads_it() -> None:
    for value, shared in [
        (None, False),
        *((word, False) for word in ("umask", "false", "0", "", "0600", "0644", "nonsense", "09")),
        *((word, True) for word in ("group", "Group", "true", "1", "all", "world", "0660", "0664")),
    ]:
        values = {} if value is None else {"core.sharedrepository": [value]}
        assert is_shared(GitConfig(values)) is shared


def test_folder_becomes_what_git_makes(tmp_path: Path, git: Git) -> None:
    git("init", "-q", "--bare", "--shared", "git.git", cwd=tmp_path)
    git("init", "-q", "--bare", "ours.git", cwd=tmp_path)

    share_folder(str(tmp_path / "ours.git"))

    for path in ("", "objects", "refs/heads", "HEAD", "config", "hooks"):
        theirs = (tmp_path / "git.git" / path).stat().st_mode
        assert (tmp_path / "ours.git" / path).stat().st_mode == theirs, path
