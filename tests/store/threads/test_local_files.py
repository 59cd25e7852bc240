import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store.conftest import Git
from store.story import THREAD

from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.locks import hold_lock
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.local_files import (
    RunDir,
    find_workdir,
    get_run_dir,
    has_runs,
    is_any_alive,
    log_path,
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
