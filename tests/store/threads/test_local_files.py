import os
import shutil
import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store.conftest import Git
from store.story import THREAD

from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.local_files import (
    find_workdir,
    log_path,
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
