"""The registry under races, kills and damage."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from refusing import refuses
from store.conftest import Git
from store.killing import dies_at
from store.small_packs import lose
from store.story import CLOSURE, WORKFLOW, signed

from uwf_git.store.store import Store, open_store
from uwf_git.store.workflows import (
    SourceFiles,
    Version,
    add_version,
    find_version,
    list_versions,
    read_sources,
)

PUT = """
import sys
sys.path.insert(0, sys.argv[3])
from store.story import CLOSURE, WORKFLOW, signed
from uwf_git.store.workflows import add_version, find_version
from uwf_git.store.store import open_store
from uwf_git.errors import Conflict
from uwf_git.store.workflows import SourceFiles
store = open_store(sys.argv[1])
for number in range(5):
    source = f"{sys.argv[2]} {number}".encode()
    while True:
        seen = find_version(store, "demo")
        try:
            add_version(
                store,
                seen,
                added=("demo", WORKFLOW, CLOSURE),
                source=SourceFiles(source),
                signing=signed(0),
            )
            break
        except Conflict:
            continue
"""


def source_of(store: Store, version: Version) -> bytes:
    return read_sources(store.objects, version.commit).workflow


def put(store: Store, seen: Version | None, source: bytes) -> Version:
    added = ("demo", WORKFLOW, CLOSURE)
    return add_version(store, seen, added=added, source=SourceFiles(source), signing=signed(0))


def test_no_version_of_many_processes_that_put_at_once_is_lost(store: Store, git: Git) -> None:
    tests = str(Path(__file__).parents[1])
    putting = [
        subprocess.Popen([sys.executable, "-c", PUT, store.path, str(which), tests])
        for which in range(4)
    ]
    assert [process.wait() for process in putting] == [0] * 4
    found = [source_of(store, each).decode() for each in list_versions(store)]
    assert len(found) == 20
    for which in range(4):
        mine = [source for source in found if source.startswith(f"{which} ")]
        assert mine == [f"{which} {number}" for number in (4, 3, 2, 1, 0)]
    assert git("fsck", "--strict", "--no-dangling", cwd=Path(store.path)) == ""


def test_a_put_killed_anywhere_is_done_or_not_begun(store: Store) -> None:
    moment, seen = 1, put(store, None, b"first")
    while dies_at(moment, partial(put, store, seen, b"killed")):
        found = find_version(open_store(store.path), "demo")
        assert found is not None
        assert source_of(store, found) in {source_of(store, seen), b"killed"}
        # Nothing that was left hinders the next.
        seen = put(store, found, f"after {moment}".encode())
        moment += 2
    assert moment > 15


def test_a_version_whose_parent_is_gone_is_listed_before_the_damage(
    store: Store, clock: Callable[[], int]
) -> None:
    one = put(store, None, b"one")
    two = put(store, one, b"two")
    lose(store, one.commit.oid)
    versions = list_versions(open_store(store.path))
    assert next(versions) == two
    with refuses("damaged-commit", match=f"{one.commit.oid} is missing"):
        next(versions)
