"""git's own gc as we run it, and what one that is killed leaves behind."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from dulwich.objects import ObjectID
from programs import write_program
from refusing import refuses
from store.conftest import Git
from store.small_packs import forget, gc, loose, make_due, write_small_pack
from store.story import Story, put_raw

from uwf_git.store.git.config import set_config
from uwf_git.store.packing import GcRuns, has_cut_history
from uwf_git.store.store import Store, open_store

LONG_AGO = (1_000_000_000, 1_000_000_000)


def age(paths: Iterable[Path]) -> None:
    for path in paths:
        os.utime(path, LONG_AGO)


def configured(store: Store, **values: str) -> Store:
    for name, value in values.items():
        set_config(f"{store.path}/config", f"gc.{name}", value)
    return open_store(store.path)


def test_large_packs_are_left_alone_when_it_happens_by_itself(
    story: Story, store: Store, git: Git
) -> None:
    at, noise = Path(store.path), os.urandom(9 * 1024 * 1024)
    (at / "noise").write_bytes(noise)
    git("update-ref", "refs/tags/noise", git("hash-object", "-w", "noise", cwd=at).strip(), cwd=at)
    git("repack", "-adq", cwd=at)
    (large,) = packs(store)
    story.step()
    gc(store, auto=True)
    assert len(packs(store)) == 2
    assert large in packs(store)
    gc(store)
    assert len(packs(store)) == 1
    story.step()
    gc(configured(store, bigPackThreshold="0"), auto=True)
    assert len(packs(store)) == 1


def test_a_large_pack_of_steps_is_packed_all_the_same(story: Story, store: Store) -> None:
    commit = store.objects[ObjectID(story.head.commit.encode())]
    own = write_small_pack(store, [commit], size_bytes=9 * 1024 * 1024)
    gc(store, auto=True)
    assert not os.path.exists(f"{own}.pack")


def packs(store: Store) -> list[str]:
    return [path.stem for path in Path(store.path, "objects/pack").glob("*.pack")]


def test_what_no_ref_needs_goes_when_it_is_old_whatever_the_settings_say(
    story: Story, store: Store
) -> None:
    young, old = put_raw(store, "blob", b"young"), put_raw(store, "blob", b"old")
    os.utime(Path(store.path, "objects", old[:2].decode(), old[2:].decode()), LONG_AGO)
    gc(configured(store, pruneExpire="now"))
    assert loose(store) == [young.decode()]


def test_what_no_ref_needs_stays_where_that_is_asked_for(story: Story, store: Store) -> None:
    old = put_raw(store, "blob", b"old")
    os.utime(Path(store.path, "objects", old[:2].decode(), old[2:].decode()), LONG_AGO)
    gc(configured(store, pruneExpire="never"))
    assert loose(store) == [old.decode()]


def test_a_graph_of_commits_is_never_made_untrue(story: Story, store: Store, git: Git) -> None:
    place = Path(store.path)
    commit = story.write_step("writer", "lost").encode()
    git("update-ref", "refs/uwf/lost", commit.decode(), cwd=place)
    git("commit-graph", "write", "--reachable", cwd=place)
    git("update-ref", "-d", "refs/uwf/lost", cwd=place)
    forget(store)
    age(place.glob("objects/pack/*"))
    gc(store)
    git("cat-file", "-e", commit.decode(), cwd=place)
    assert git("fsck", "--strict", "--no-dangling", cwd=place) == ""


def test_steps_behind_the_mark_of_a_plain_shallow_fetch_stay(
    story: Story, store: Store, git: Git
) -> None:
    place, before = Path(store.path), story.head.commit
    (place / "shallow").write_text(f"{story.step().commit}\n")
    age(place.glob("objects/pack/*"))
    gc(store)
    git("cat-file", "-e", before, cwd=place)
    # That of a project's own clone concerns its branches.
    tree = git("mktree", cwd=place, stdin="").strip()
    (place / "shallow").write_text(git("commit-tree", "-m", "x", tree, cwd=place))
    assert not has_cut_history(store)


def test_a_project_keeps_its_reflogs_its_index_and_its_branches(tmp_path: Path, git: Git) -> None:
    git("init", "--quiet", "project", cwd=tmp_path)
    project = tmp_path / "project"
    for name in ("one", "two"):
        (project / "file").write_text(name)
        git("add", "file", cwd=project)
        git("commit", "--quiet", "-m", name, cwd=project)
    git("reset", "--quiet", "--hard", "HEAD^", cwd=project)
    (project / "file").write_text("staged")
    git("add", "file", cwd=project)
    age(project.glob(".git/objects/??/*"))
    before = git("reflog", cwd=project), git("diff", "--cached", cwd=project)
    gc(open_store(str(project)))
    assert (git("reflog", cwd=project), git("diff", "--cached", cwd=project)) == before
    assert git("fsck", "--strict", cwd=project) == ""


def test_another_repository_in_the_environment_is_not_meant(
    story: Story, store: Store, tmp_path: Path
) -> None:
    other = {"GIT_DIR": str(tmp_path / "other"), "GIT_OBJECT_DIRECTORY": str(tmp_path)}
    gc(store, environ=dict(os.environ) | other)
    assert loose(store) == []


def test_a_gc_of_git_that_runs_is_named(story: Story, store: Store) -> None:
    Path(store.path, "gc.pid").write_text(f"{os.getpid()} {os.uname().nodename}")
    with pytest.raises(GcRuns, match=f"pid {os.getpid()}"):
        gc(store)


def test_gc_runs_no_program_of_the_store(story: Story, store: Store, tmp_path: Path) -> None:
    """A store may come from anywhere, with its hooks and its config."""
    hook = Path(store.path, "hooks", "pre-auto-gc")
    hook.parent.mkdir(exist_ok=True)
    write_program(hook, f"touch {tmp_path}/ran")
    make_due(store.path)

    gc(open_store(store.path), auto=True)
    assert not (tmp_path / "ran").exists()

    set_config(f"{store.path}/config", "gc.recentObjectsHook", str(hook))
    with refuses("setting-not-trusted"):
        gc(open_store(store.path, environ=os.environ))
    assert not (tmp_path / "ran").exists()
