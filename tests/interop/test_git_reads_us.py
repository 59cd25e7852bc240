"""Real git reads what we wrote, keeps it, and carries it elsewhere whole."""

from collections.abc import Callable
from pathlib import Path

from fresh_store import fresh_store
from interop.conftest import ACTIVE, ENDED
from store.loose import loosen
from store.story import THREAD, Story

from uwf_git.commands.verify.verify import verify
from uwf_git.store.remotes.remotes import add_remote
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import get_head, list_threads

Git = Callable[..., str]

REFS = [
    "refs/archive/01J7K9M2XNPQR5VWBCDF8G3H4T",
    "refs/cas/nodes",
    "refs/threads/01J7K9M2XNPQR5VWBCDF8G3H4V",
    "refs/workflows/demo",
]


def test_git_gives_back_the_source_byte_for_byte(store: Store, git: Git) -> None:
    assert git("show", "refs/workflows/demo~:workflow.yaml", cwd=Path(store.path)) == (
        "name: demo\r\n"
    )
    assert git("show", "refs/workflows/demo:workflow.yaml", cwd=Path(store.path)) == (
        "name: demo # é"
    )


def test_git_says_what_a_step_added(store: Store, git: Git) -> None:
    told = git("diff", "--name-status", f"{REFS[2]}~", REFS[2], cwd=Path(store.path))
    changes = [line.split("\t") for line in told.splitlines()]
    assert {how for how, _path in changes} == {"A", "M"}
    assert sorted(path for how, path in changes if how == "M") == ["head.json", "now.json"]
    assert len([path for how, path in changes if how == "A"]) == 2


def test_a_plain_clone_brings_no_thread_but_a_refspec_does(
    store: Store, git: Git, tmp_path: Path
) -> None:
    git("clone", "--quiet", store.path, "plain", cwd=tmp_path)
    assert git("for-each-ref", cwd=tmp_path / "plain") == ""
    refspec = "remote.origin.fetch=+refs/threads/*:refs/threads/*"
    git("clone", "--quiet", "-c", refspec, store.path, "asked", cwd=tmp_path)
    assert list_threads(open_store(str(tmp_path / "asked")), archived=False) == [ACTIVE]


def test_a_bundle_carries_a_thread(store: Store, git: Git, tmp_path: Path) -> None:
    git("bundle", "create", "--quiet", tmp_path / "thread.bundle", REFS[0], cwd=Path(store.path))
    git("init", "--quiet", "--bare", "other.git", cwd=tmp_path)
    git("fetch", "--quiet", "../thread.bundle", "refs/*:refs/*", cwd=tmp_path / "other.git")
    other = open_store(str(tmp_path / "other.git"))
    assert get_head(other, ENDED) == get_head(store, ENDED)


def test_a_thread_that_git_moved_is_where_git_put_it(store: Store, git: Git) -> None:
    """Refs are git's files: `update-ref` and we write the same ones, under the same lock."""
    before = get_head(store, ACTIVE)
    older = git("rev-parse", f"{REFS[2]}~", cwd=Path(store.path)).strip()
    git("update-ref", REFS[2], older, before.commit, cwd=Path(store.path))
    assert get_head(store, ACTIVE).commit == older
    git("update-ref", "-d", REFS[2], cwd=Path(store.path))
    assert list_threads(store, archived=False) == []


def test_git_moves_a_thread_from_where_we_put_it(
    store: Store, clock: Callable[[], int], git: Git
) -> None:
    seen = get_head(store, ACTIVE)
    assert store.refs.delete(REFS[2], seen=seen.commit)
    assert store.refs.create(REFS[2], seen.commit)
    git("update-ref", REFS[2], f"{REFS[2]}~", seen.commit, cwd=Path(store.path))
    assert get_head(store, ACTIVE).commit != seen.commit


def test_hint_for_a_broken_file_gives_the_object_back(
    clock: Callable[[], int], git: Git, tmp_path: Path
) -> None:
    """git never overwrites an object's file: fetching again leaves the broken one."""
    store = fresh_store()
    Story(store, clock).step()
    hub = str(tmp_path / "hub.git")
    git("clone", "-q", "--mirror", "--no-hardlinks", store.path, hub, cwd=tmp_path)
    add_remote(store, "origin", hub, cwd=str(tmp_path))
    loosen(store)
    blob = git("rev-parse", f"refs/threads/{THREAD}:head.json", cwd=store.path).strip()
    name = f"objects/{blob[:2]}/{blob[2:]}"
    path = Path(store.path, name)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:20])

    def hints() -> set[str]:
        return {each.hint for each in verify(open_store(store.path), []).troubles}

    (hint,) = hints()
    assert hint.startswith(f"if {name} is a file of the store, move it elsewhere")
    assert "`git fetch --refetch REMOTE`" in hint
    git("fetch", "-q", "--refetch", "origin", cwd=store.path)
    assert hints() == {hint}
    path.rename(tmp_path / "broken")
    git("fetch", "-q", "--refetch", "origin", cwd=store.path)
    assert hints() == set()
