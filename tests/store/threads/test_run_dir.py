"""The layout below `<git dir>/uwf/run/`."""

import os
from pathlib import Path

import pytest

from uwf_git.model.names import ThreadId
from uwf_git.store.disk.locks import hold_lock
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.run_dir import (
    MAX_REASON,
    RunDir,
    get_run_dir,
    has_runs,
    is_any_alive,
    list_check_runs,
    list_run_dirs,
    list_threads_with_runs,
    remove_runs,
)

THREAD = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")
COMMIT = Oid("5" * 40)


@pytest.fixture
def run(store: Store) -> RunDir:
    found = get_run_dir(store, THREAD, COMMIT)
    found.begin("writer 3QZ82VBH2MY12 nobody")
    os.makedirs(found.path)
    os.makedirs(found.step_dir)
    return found


def test_run_is_named_by_thread_and_commit(store: Store, run: RunDir) -> None:
    assert run.path == os.path.join(store.path, "uwf", "run", THREAD, COMMIT)
    assert run.commit == COMMIT
    assert (list_run_dirs(store, THREAD), list_threads_with_runs(store)) == ([run], [THREAD])


def test_stray_files_are_no_runs(store: Store) -> None:
    folder = Path(store.path, "uwf", "run")
    folder.mkdir(parents=True)
    (folder / THREAD).write_text("a file")
    (folder / "x").mkdir()

    assert (list_run_dirs(store, THREAD), list_threads_with_runs(store)) == ([], [])
    assert not has_runs(store, THREAD)


def test_turn_that_begins_discards_an_older_run(run: RunDir) -> None:
    Path(run.path, "exit").write_text("0\n")
    Path(run.step_dir, "failure.json").write_text("{}")
    run.write_stop_reason("lunch")

    run.begin("checker 3QZ82VBH2MY12 somebody")

    assert run.read("turn") == "checker 3QZ82VBH2MY12 somebody"
    assert run.read_stop_reason() is None
    assert not os.path.exists(run.path)
    assert not os.path.exists(run.step_dir)


def test_stop_reason_is_kept_up_to_a_limit(run: RunDir) -> None:
    run.write_stop_reason("é" * (MAX_REASON + 1))

    assert run.read_stop_reason() == "é" * MAX_REASON


def test_turn_that_is_unreadable_is_none(run: RunDir) -> None:
    Path(run.path + ".turn").write_bytes(b"\xff")

    assert run.read("turn") == ""


def test_agent_is_alive_while_it_holds_the_lock(store: Store, run: RunDir) -> None:
    assert not run.is_alive()
    with hold_lock(run.alive, wait=False):
        assert run.is_alive()
        assert is_any_alive(store, THREAD)
        with run.hold_alive() as alive:
            assert alive is None
    assert not is_any_alive(store, THREAD)


def test_nothing_is_left_of_a_run_that_is_removed(store: Store, run: RunDir) -> None:
    other = get_run_dir(store, THREAD, Oid("6" * 40))
    other.begin("writer")
    run.write_stop_reason("lunch")
    assert not run.is_alive()

    run.remove()

    assert os.listdir(os.path.dirname(run.path)) == ["6" * 40 + ".turn"]
    remove_runs(store, THREAD)
    assert not has_runs(store, THREAD)


def test_checks_of_a_turn_are_listed_in_their_order(store: Store, run: RunDir) -> None:
    checks = [run.get_check(number) for number in (10, 2)]
    for each in checks:
        os.makedirs(each.path)
    Path(run.path + ".checks", "notes").touch()

    assert run.list_checks() == list_check_runs(store, THREAD) == checks[::-1]


def test_path_of_the_agents_own_file_is_kept_until_the_next_turn(run: RunDir) -> None:
    run.write("output", "out/höhe.json")

    assert run.read("output") == "out/höhe.json"
    run.begin("checker 3QZ82VBH2MY12 somebody")
    assert run.read("output") == ""


def test_folders_of_any_depth_are_removed(run: RunDir) -> None:
    here = os.getcwd()
    os.chdir(run.step_dir)
    try:
        for _ in range(3000):
            os.mkdir("d")
            os.chdir("d")
            Path("file").touch()
    finally:
        os.chdir(here)

    run.remove()

    assert os.listdir(os.path.dirname(run.path)) == []
