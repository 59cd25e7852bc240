from collections.abc import Iterator
from pathlib import Path

import pytest

from uwf_git.commands.verify.finding import Finding
from uwf_git.commands.verify.limited import first_finding
from uwf_git.errors import StoreDamaged
from uwf_git.store.git.config import set_config
from uwf_git.store.store import Store, create_store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return create_store(str(tmp_path / "store.git"))


def test_first_finding_is_returned_whole(store: Store) -> None:
    first = Finding("it is wrong", "mend it", "refs/threads/x", node="4KNMR2P0X3B1Q")

    def check() -> Iterator[Finding]:
        yield first
        raise AssertionError("nobody asks for a second one")

    assert first_finding(store, check) == first
    assert first_finding(store, lambda: iter(())) is None


def test_damage_is_raised_as_in_this_process(store: Store) -> None:
    def check() -> Iterator[Finding]:
        yield from ()
        raise StoreDamaged("a commit is missing", hint="look")

    with pytest.raises(StoreDamaged, match="a commit is missing"):
        first_finding(store, check)


def test_check_that_takes_too_much_memory_is_a_finding(store: Store) -> None:
    def check() -> Iterator[Finding]:
        assert bytearray(500 * 1024**2)
        yield from ()

    found = first_finding(store, check)

    assert found is not None
    assert "the check of what came took too much memory" in found.message
    assert "uwf.maxBlobSize" in found.hint
    set_config(f"{store.path}/config", "uwf.maxBlobSize", "64m")
    assert first_finding(open_store(store.path), check) is None
