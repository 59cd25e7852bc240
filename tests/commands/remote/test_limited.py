from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from uwf_git.commands.remote.reconcile import first_finding
from uwf_git.commands.verify.history import Finding
from uwf_git.errors import StoreDamaged
from uwf_git.store.git.config import set_config
from uwf_git.store.store import Store, create_store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return create_store(str(tmp_path / "store.git"))


def test_damage_is_a_finding(store: Store) -> None:
    def check() -> Iterator[Finding]:
        yield from ()
        raise StoreDamaged("a commit is missing", hint="look")

    assert first_finding(store, check) == Finding("a commit is missing", "look")


def reserve(mebibytes: int) -> Callable[[], Iterator[Finding]]:
    def check() -> Iterator[Finding]:
        assert bytes(mebibytes * 1024**2)
        yield from ()

    return check


@pytest.mark.parametrize(
    ("largest_blob", "enough", "too_much"), [(None, 200, 500), ("64m", 900, 1500)]
)
def test_check_may_take_memory_for_the_largest_blob(
    store: Store, largest_blob: str | None, enough: int, too_much: int
) -> None:
    if largest_blob is not None:
        set_config(f"{store.path}/config", "uwf.maxBlobSize", largest_blob)
    store = open_store(store.path)

    assert first_finding(store, reserve(enough)) is None

    found = first_finding(store, reserve(too_much))
    assert found is not None
    assert "the check of what came took too much memory" in found.message
    assert "uwf.maxBlobSize" in found.hint
