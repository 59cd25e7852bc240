import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusing import refuses
from store.conftest import Git
from store.story import THREAD

from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.locks import hold_lock
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.local_files import (
    Note,
    RunDir,
    find_jobs,
    find_kill_request,
    find_workdir,
    get_run_dir,
    has_runs,
    is_any_alive,
    list_possibly_active,
    list_run_dirs,
    log_path,
    remove_folder,
    remove_runs,
    set_workdir,
)


def test_log_lies_below_what_can_be_deleted(store: Store) -> None:
    assert log_path(store, THREAD) == f"{store.path}/uwf/logs/{THREAD}.log"


# What a path can be on this system: any bytes but NUL.
paths = st.binary(min_size=1).map(lambda raw: os.fsdecode(raw.replace(b"\0", b"/")))


@given(path=paths)
@settings(
    max_examples=25,  # each waits for the disk
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_bytes_that_name_a_folder_come_back(store: Store, path: str) -> None:
    set_workdir(store, THREAD, path)
    assert find_workdir(store, THREAD) == path


def test_deleting_all_that_can_be_deleted_leaves_them(store: Store) -> None:
    set_workdir(store, THREAD, "/here")
    shutil.rmtree(store.local_path(), ignore_errors=True)
    assert find_workdir(open_store(store.path), THREAD) == "/here"


def test_a_path_means_nothing_elsewhere_so_no_clone_has_it(
    store: Store, git: Git, tmp_path: Path
) -> None:
    set_workdir(store, THREAD, "/here")
    git("clone", "--quiet", "--mirror", store.path, tmp_path / "clone.git", cwd=tmp_path)
    assert find_workdir(open_store(str(tmp_path / "clone.git")), THREAD) is None
    assert git("fsck", "--strict", cwd=Path(store.path)) == ""


SET = """
import sys
from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store
from uwf_git.store.threads.local_files import set_workdir
for number in range(20):
    set_workdir(open_store(sys.argv[1]), ThreadId(sys.argv[2]), sys.argv[3] * 2000)
"""


def test_a_reader_sees_one_path_or_another_and_never_a_half(store: Store) -> None:
    set_workdir(store, THREAD, "a" * 2000)
    writers = [
        subprocess.Popen([sys.executable, "-c", SET, store.path, THREAD, letter]) for letter in "bc"
    ]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        seen.add(find_workdir(store, THREAD))
    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen <= {letter * 2000 for letter in "abc"}
    assert find_workdir(store, THREAD) in {letter * 2000 for letter in "bc"}
    assert [path.name for path in Path(store.path, "uwf-workdirs").iterdir()] == [THREAD]


# The layout below `<git dir>/uwf/run/`.

THREAD_RUN = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")
COMMIT = Oid("5" * 40)


@pytest.fixture
def run(store: Store) -> RunDir:
    found = get_run_dir(store, THREAD_RUN, COMMIT)
    found.begin("writer 3QZ82VBH2MY12 nobody")
    os.makedirs(found.path)
    os.makedirs(found.step_dir)
    return found


def test_turn_that_begins_discards_an_older_run(run: RunDir) -> None:
    Path(run.path, "exit").write_text("0\n")
    Path(run.step_dir, "failure.json").write_text("{}")
    run.write_stop_reason("lunch")

    run.begin("checker 3QZ82VBH2MY12 somebody")

    assert run.read("turn") == "checker 3QZ82VBH2MY12 somebody"
    assert run.read_stop_reason() is None
    assert not os.path.exists(run.path)
    assert not os.path.exists(run.step_dir)


def test_turn_that_is_unreadable_is_none(run: RunDir) -> None:
    Path(run.path + ".turn").write_bytes(b"\xff")

    assert run.read("turn") == ""


def test_agent_is_alive_while_it_holds_the_lock(store: Store, run: RunDir) -> None:
    assert not run.is_alive()
    with hold_lock(run.alive, wait=False):
        assert run.is_alive()
        assert is_any_alive(store, THREAD_RUN)
        with run.hold_alive() as alive:
            assert alive is None
    assert not is_any_alive(store, THREAD_RUN)


def test_nothing_is_left_of_a_run_that_is_removed(store: Store, run: RunDir) -> None:
    get_run_dir(store, THREAD_RUN, Oid("6" * 40)).begin("writer")
    run.write_stop_reason("lunch")
    assert not run.is_alive()

    run.remove()

    assert os.listdir(os.path.dirname(run.path)) == ["6" * 40 + ".turn"]
    remove_runs(store, THREAD_RUN)
    assert not has_runs(store, THREAD_RUN)


# What another user of a shared store may have planted: a link to what is mine.


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("secret", f"{THREAD_RUN}.log", f"{COMMIT}.turn"):
        (folder / name).write_text("7")
    return folder


def test_no_note_is_read_through_a_link(store: Store, run: RunDir, mine: Path) -> None:
    notes = [f"{run.path}.{note}" for note in get_args(Note)]
    locks = [store.local_path("locks", THREAD_RUN + each) for each in ("", ".kill", ".jobs")]
    for path in (*notes, *locks, f"{store.path}/uwf-workdirs/{THREAD_RUN}"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).unlink(missing_ok=True)
        Path(path).symlink_to(mine / "secret")

    assert {run.read(note) for note in get_args(Note)} == {""}
    assert find_kill_request(store, THREAD_RUN) is None
    assert find_jobs(store, THREAD_RUN) is None
    assert find_workdir(store, THREAD_RUN) is None
    Path(locks[1]).unlink()
    os.mkfifo(locks[1])
    assert find_kill_request(store, THREAD_RUN) is None


def test_no_folder_is_entered_through_a_link(store: Store, run: RunDir, mine: Path) -> None:
    here = sorted(os.listdir(mine))
    for path in (run.path, run.step_dir, run.path + ".checks"):
        shutil.rmtree(path, ignore_errors=True)
        os.symlink(mine, path)
    assert run.list_checks() == []
    run.begin("writer")
    assert not os.path.lexists(run.path)
    for folder in ("run/" + THREAD_RUN, "run", "../uwf"):
        place = Path(store.path, "uwf", folder).resolve()
        place.rename(mine.parent / "aside")
        place.symlink_to(mine)
        for act in (list_run_dirs, remove_runs, is_any_alive):
            with refuses("linked-folder", match=str(place)):
                act(store, THREAD_RUN)
        remove_folder(str(place))
        if folder == "run/" + THREAD_RUN:
            assert not has_runs(store, THREAD_RUN)
            assert list_possibly_active(store) == []
        (mine.parent / "aside").rename(place)
    assert sorted(os.listdir(mine)) == here
    assert run.read("turn") == "writer"


def test_folder_that_becomes_a_link_while_it_is_removed_stays(
    run: RunDir, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os.path, "islink", lambda _path: False)
    os.rmdir(run.path)
    os.symlink(mine, run.path)

    remove_folder(run.path)

    assert (mine / "secret").exists()
