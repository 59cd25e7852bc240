import os
import shutil
import stat
import sys
import time
from pathlib import Path

import pytest
from commands.world import Git, World
from refusing import refuses
from store.small_packs import make_due, unpacked_in

from uwf_git.commands.admin import (
    Shared,
    gc_if_due,
    gc_store,
    gc_unwatched,
    get_store_setting,
    init_shared,
    init_store,
    is_gc_due,
    list_settings,
    set_setting,
    tidy,
)
from uwf_git.model.names import ThreadId
from uwf_git.plan.settings import load_plan_settings
from uwf_git.store.git.hook_files import SHIMS, find_unpinned
from uwf_git.store.git.program import ProgramFailed
from uwf_git.store.packing import (
    NO_GIT,
    count_files,
    has_failed_lately,
    hold_gc_lock,
    is_gc_running,
    take_gc_log,
    write_gc_log,
)
from uwf_git.store.store import create_store, list_changed_settings, open_store, watch_config
from uwf_git.store.trust import describe_command, is_trusted, list_trusted


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """Return where a hub is to be made."""
    return tmp_path / "hub.git"


@pytest.mark.parametrize(
    "value", ["uwf-mock x", ' "quoted" # ; \\ ', "line\nbreak", "tab\there", "日本", ""]
)
def test_value_comes_back_as_it_was_set(value: str, world: World) -> None:
    told = set_setting(world.store, "agent", value)
    world.reopen()

    assert get_store_setting(world.store, "agent") == told
    assert (told.name, told.value) == ("uwf.agent", value)


@pytest.mark.parametrize("value", ["true", "false", "yes", "no", "On", "off", "1", "0"])
def test_flag_is_set_in_the_words_of_git(value: str, world: World) -> None:
    assert set_setting(world.store, "fsync", value).value == value


def test_what_is_seldom_set_is_listed_once_it_is_set(world: World) -> None:
    set_setting(world.store, "maxBlobSize", "1m")
    world.reopen()

    listed = {each.name for each in list_settings(world.store, with_seldom=False)}

    assert {"uwf.agent", "uwf.maxBlobSize", "uwf.plan.agent"} <= listed
    assert listed.isdisjoint({"uwf.signTimeout", "uwf.maxFetchRefs", "uwf.plan.port"})


def test_setting_that_is_meant_is_named_without_a_guess(world: World) -> None:
    for name, meant in (("uwf.formt", "did you mean uwf.format? "), ("nosuch", "")):
        with refuses("no-such-setting") as refused:
            set_setting(world.store, name, "1")
        assert refused.value.hint == f"{meant}`uwf config list --all` shows every setting"


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("retries", "often", "bad-retry-setting"),
        ("backoff", "-1", "bad-retry-setting"),
        ("maxBlobSize", "big", "bad-receive-limit"),
        ("signTimeout", "0", "unfit-setting"),
        ("format", "xml", "bad-value"),
        ("recordFiles", "maybe", "bad-value"),
    ],
)
def test_value_that_means_nothing_is_refused_when_it_is_set(
    name: str, value: str, error: str | type[Exception], world: World
) -> None:
    with refuses(error):
        set_setting(world.store, name, value)
    world.reopen()
    with refuses("not-set"):
        get_store_setting(world.store, name)


def test_command_that_is_set_here_is_trusted(world: World) -> None:
    config = Path(world.store.path, "config")
    before = config.read_text()
    config.write_text("[")
    with refuses("bad-config"):
        set_setting(world.store, "agent", "./agent", cwd=str(world.place))
    assert list_trusted(world.store) == []
    config.write_text(before)
    set_setting(world.store, "agent", "./agent", cwd=str(world.place))
    assert is_trusted(world.store, {"command": "./agent"}, str(world.place))
    assert not is_trusted(world.store, {"command": "./agent"}, "/elsewhere")
    set_setting(world.store, "onEvent", "./log")
    assert is_trusted(world.store, describe_command("uwf.onEvent", "./log"), world.store.path)
    set_setting(world.store, "agent", "")
    assert len(list_trusted(world.store)) == 2


def test_setting_of_plans_is_checked_and_trusted_when_it_is_set(world: World) -> None:
    with refuses("bad-plan-setting"):
        set_setting(world.store, "plan.planDir", "../elsewhere")
    set_setting(world.store, "plan.planDir", "plans", cwd=str(world.place))
    set_setting(world.store, "plan.agent", "claude", cwd=str(world.place))
    set_setting(world.store, "plan.verifier", "")
    world.reopen()

    settings = load_plan_settings(world.store, str(world.place))

    assert (settings.plan_dir, settings.agent) == ("plans", "claude")


CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"


def test_project_keeps_everything_it_has(tmp_path: Path, git: Git) -> None:
    git("init", "-q", cwd=tmp_path)
    (tmp_path / "file").write_text("x")
    git("add", "file", cwd=tmp_path)
    git("commit", "-qm", "one", cwd=tmp_path)
    before = git("rev-parse", "HEAD", cwd=tmp_path)

    made = init_store(".", str(tmp_path), os.environ)

    assert not made.created
    assert made.store.path == str(tmp_path / ".git")
    assert git("rev-parse", "HEAD", cwd=tmp_path) == before
    assert git("status", "--porcelain", cwd=tmp_path) == ""


def test_setting_of_a_store_that_an_agent_has_used_is_known(tmp_path: Path) -> None:
    environ = os.environ | {"HOME": str(tmp_path)}
    store = create_store(str(tmp_path / "store.git"), environ=environ)
    watch_config(store)

    assert init_store("store.git", str(tmp_path), environ).is_adopted
    assert list_changed_settings(open_store(store.path, environ=environ)) == []


def test_a_new_store_knows_nothing_of_one_that_was_at_its_path(tmp_path: Path) -> None:
    environ = os.environ | {"HOME": str(tmp_path)}
    store = init_store("store.git", str(tmp_path), environ).store
    set_setting(store, "uwf.onEvent", "tell")
    watch_config(store)
    shutil.rmtree(store.path)

    made = init_store("store.git", str(tmp_path), environ)

    assert made.created
    assert list_changed_settings(made.store) == []


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_repository_that_git_shares_stays_open_to_the_group(
    tmp_path: Path, git: Git, umask: int
) -> None:
    git("init", "--quiet", "--bare", "--shared", "store.git", cwd=tmp_path)
    before = os.umask(umask)
    try:
        init_store("store.git", str(tmp_path), os.environ)
    finally:
        os.umask(before)

    folders = [path for path in (tmp_path / "store.git" / "uwf").rglob("*") if path.is_dir()]
    assert folders
    assert [path for path in folders if path.stat().st_mode & 0o070 != 0o070] == []


def test_killed_init_is_completed(tmp_path: Path) -> None:
    (tmp_path / "objects" / "pack").mkdir(parents=True)
    settings = CONFIG + '[remote "a"]\n\turl = /x\n'
    (tmp_path / "config").write_text(settings)
    (tmp_path / ".tmp_0123456789abcdef").write_text("")

    assert init_store(".", str(tmp_path), os.environ).created
    assert (tmp_path / "config").read_text().startswith(settings)


def share(path: Path | None, environ: dict[str, str] | None = None) -> Shared:
    text = None if path is None else str(path)
    return init_shared(text, "/", environ or dict(os.environ), python=sys.executable)


def test_new_one_is_as_git_would_make_it_and_more(git: Git, hub: Path) -> None:
    made = share(hub)

    assert made.created
    settings = dict(
        line.split("=", 1) for line in git("config", "--local", "--list", cwd=hub).splitlines()
    )
    assert settings["core.sharedrepository"] == "group"
    assert settings["core.bare"] == "true"
    assert settings["uwf.store"] == "true"
    assert settings["core.hookspath"] == "hooks"
    assert settings["receive.fsckobjects"] == "true"
    assert settings["receive.shallowupdate"] == "false"
    assert settings["receive.denynonfastforwards"] == "true"
    hidden = git("config", "--get-all", "transfer.hideRefs", cwd=hub)
    assert hidden.split() == ["refs/uwf", "refs/replace"]
    assert sorted(os.listdir(hub / "hooks")) == sorted(SHIMS)
    assert made.hooks == [str(hub / "hooks" / name) for name in SHIMS]


def test_group_may_write_everything_that_the_owner_may(tmp_path: Path) -> None:
    share(tmp_path / "hub.git")

    for folder, _folders, files in os.walk(tmp_path / "hub.git"):
        mode = os.stat(folder).st_mode
        assert mode & stat.S_ISGID
        assert mode & stat.S_IRWXG == stat.S_IRWXG
        for name in files:
            mode = os.stat(os.path.join(folder, name)).st_mode
            assert mode >> 3 & 0o6 == mode >> 6 & 0o6, name


def test_done_again_it_changes_nothing_but_the_hooks(git: Git, hub: Path) -> None:
    share(hub)
    git("config", "receive.fsckObjects", "false", cwd=hub)
    config = (hub / "config").read_bytes()
    (hub / "hooks" / "pre-receive").write_text(SHIMS["pre-receive"] + "# older\n")

    assert not share(hub).created

    assert (hub / "config").read_bytes() == config
    assert "older" not in (hub / "hooks" / "pre-receive").read_text()


def test_repository_with_a_work_tree_is_refused(tmp_path: Path, git: Git) -> None:
    git("init", "-q", cwd=tmp_path)
    config = (tmp_path / ".git" / "config").read_bytes()

    with refuses("not-bare"):
        share(tmp_path)

    assert (tmp_path / ".git" / "config").read_bytes() == config


def test_hooks_of_others_keep_everything_as_it_is(tmp_path: Path, git: Git, hub: Path) -> None:
    git("init", "-q", "--bare", hub, cwd=tmp_path)
    (hub / "hooks" / "pre-receive").write_text("#!/bin/sh\n")
    config = (hub / "config").read_bytes()

    with refuses("foreign-hook"):
        share(hub)

    assert (hub / "config").read_bytes() == config
    assert (hub / "hooks" / "pre-receive").read_text() == "#!/bin/sh\n"
    assert not (hub / "hooks" / "post-receive").exists()


@pytest.mark.parametrize("exists", [True, False])
def test_hooks_path_of_the_user_does_not_count(*, exists: bool, tmp_path: Path, git: Git) -> None:
    hub = tmp_path / "hub.git"
    git("config", "--global", "core.hooksPath", "/etc/hooks", cwd=tmp_path)
    if exists:
        git("init", "-q", "--bare", hub, cwd=tmp_path)

    share(hub)

    assert git("config", "core.hooksPath", cwd=hub) == "hooks\n"


def test_hooks_path_of_the_repository_is_refused_before_any_change(
    tmp_path: Path, git: Git, hub: Path
) -> None:
    git("init", "-q", "--bare", hub, cwd=tmp_path)
    git("config", "core.hooksPath", "/etc/hooks", cwd=hub)
    config = (hub / "config").read_bytes()

    with refuses("hooks-elsewhere"):
        share(hub)

    assert (hub / "config").read_bytes() == config


def test_older_one_gets_what_it_lacks(git: Git, hub: Path) -> None:
    share(hub)
    assert find_unpinned(str(hub)) is None
    git("config", "--unset", "core.hooksPath", cwd=hub)
    assert find_unpinned(str(hub)) == (
        "it does not set core.hooksPath, so the git settings of whoever pushes count"
    )

    assert not share(hub).created

    assert find_unpinned(str(hub)) is None


@pytest.mark.parametrize("name", ["notes.txt", "config"])
def test_folder_of_other_files_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()

    with refuses("not-empty"):
        share(tmp_path)
    assert os.listdir(tmp_path) == [name]


def due(world: World) -> None:
    """Make the store due for packing."""
    make_due(world.store.path)
    world.reopen()


def test_leftovers_of_killed_processes_are_removed_and_counted(world: World) -> None:
    world.begun()
    stray = Path(world.store.path, "objects", "tmp_obj_1")
    stray.touch()
    os.utime(stray, (1_000_000_000, 1_000_000_000))
    assert gc_store(world.store, world.caller.environ).swept == 1
    assert not stray.exists()


def test_thousands_of_refs_are_packed_and_objects_are_left(world: World, thread: ThreadId) -> None:
    commit = world.store.refs.find(f"refs/threads/{thread}")
    archive = Path(world.store.path, "refs", "archive")
    archive.mkdir()
    for number in range(1001):
        (archive / f"01J{number:023}").write_text(f"{commit}\n")
    assert gc_if_due(world.store, world.caller.environ)
    assert list(archive.iterdir()) == []
    assert unpacked_in(world.store) > 0
    assert not is_gc_due(world.store)


def test_nothing_begins_beside_another_or_after_a_failure(world: World) -> None:
    due(world)
    with hold_gc_lock(world.store):
        assert not is_gc_due(world.store)
        assert not gc_if_due(world.store, world.caller.environ)
    write_gc_log(world.store, "why")
    assert not is_gc_due(world.store)
    assert not gc_unwatched(world.store, world.caller.environ)


def test_failure_in_the_background_is_logged(world: World) -> None:
    world.begun()
    due(world)
    world.caller = world.caller._replace(environ={"PATH": str(world.place)})
    world.program("echo 'fatal: no space\nfatal: no repack' >&2; exit 128", name="git")
    with pytest.raises(ProgramFailed, match="no space"):
        gc_if_due(world.store, world.caller.environ)
    assert not has_failed_lately(world.store)
    tidy(world.store, world.caller.environ)
    assert has_failed_lately(world.store)
    assert take_gc_log(world.store) == "git gc failed: fatal: no space fatal: no repack"


def test_without_git_a_store_goes_on_and_says_so_once(world: World, thread: ThreadId) -> None:
    due(world)
    environ = {**world.caller.environ, "PATH": ""}
    packs = count_files(world.store).packs

    assert tidy(world.store, environ) == NO_GIT
    assert tidy(world.store, environ) is None

    assert count_files(world.store).packs == packs
    assert world.step(thread).role == "writer"


def test_store_that_stays_due_is_not_packed_again_for_a_day(world: World) -> None:
    world.begun()
    due(world)
    world.caller = world.caller._replace(environ={"PATH": str(world.place)})
    world.program("exit 0", name="git")
    assert gc_if_due(world.store, world.caller.environ)
    assert not is_gc_due(world.store)
    told = take_gc_log(world.store)
    assert told is not None
    assert "too young to be deleted" in told


def test_background_gc_returns_at_once(world: World) -> None:
    world.begun()
    due(world)
    world.configure("gc.autoDetach", "true")
    tidy(world.store, world.caller.environ)
    deadline = time.monotonic() + 20
    while count_files(world.store).packs == 0 or is_gc_running(world.store):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_one_that_cannot_be_started_is_kept_as_a_failure(world: World) -> None:
    due(world)
    world.configure("gc.autoDetach", "true")
    tidy(world.store, {"NUL": "\0"})
    told = take_gc_log(world.store)
    assert told is not None
    assert "could not be started" in told


def test_in_a_shared_store_the_group_may_pack_as_well(world: World) -> None:
    world.begun()
    world.configure("core.sharedRepository", "group")
    before = os.umask(0o022)
    try:
        gc_store(world.store, world.caller.environ)
    finally:
        os.umask(before)
    for name in ("uwf/locks/gc", "packed-refs"):
        assert Path(world.store.path, name).stat().st_mode & 0o060 == 0o060
