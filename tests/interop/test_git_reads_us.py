"""Real git reads what we wrote, keeps it, and carries it elsewhere whole."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fresh_store import fresh_store
from interop.conftest import ACTIVE, ENDED
from store.loose import loosen
from store.story import THREAD, WORKFLOW, Story

from uwf_git.commands.verify.verify import verify
from uwf_git.model.builtin import walk_closure
from uwf_git.store.lookup.lookup import NodeLookup, list_nodes
from uwf_git.store.objects.commit import read_commit_file
from uwf_git.store.remotes.remotes import add_remote
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import get_head, list_threads
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.snapshot import read_snapshot
from uwf_git.store.workflows import SOURCE_FILE, list_versions

Git = Callable[..., str]

REFS = [
    "refs/archive/01J7K9M2XNPQR5VWBCDF8G3H4T",
    "refs/cas/nodes",
    "refs/threads/01J7K9M2XNPQR5VWBCDF8G3H4V",
    "refs/workflows/demo",
]


def whole_of(store: Store) -> list[Any]:
    """Read everything that there is, the closure of every node of every chain with it."""
    commits = [each.commit for each in list_versions(store)]
    seen: list[Any] = [
        (commit.oid, read_commit_file(store.objects, commit, SOURCE_FILE)) for commit in commits
    ]
    seen += [NodeLookup(store).get(name) for name in list_nodes(store)]
    for thread in [*list_threads(store, archived=False), *list_threads(store, archived=True)]:
        for snapshot in walk_history(store, get_head(store, thread).commit):
            seen += [snapshot.record, snapshot.subject, snapshot.body, snapshot.get_present()]
            seen += walk_closure([snapshot.record.node], snapshot.get_node)
    return seen


def test_git_finds_nothing_wrong(store: Store, git: Git) -> None:
    assert git("fsck", "--strict", "--full", cwd=Path(store.path)) == ""


def test_git_lists_our_refs(store: Store, git: Git) -> None:
    told = git("for-each-ref", "--format=%(refname)", cwd=Path(store.path))
    assert told.split() == REFS


def test_git_tells_the_story_of_a_thread(store: Store, git: Git) -> None:
    told = git("log", "--format=%an <%ae> %s", REFS[0], cwd=Path(store.path))
    assert told.splitlines() == [
        "C O Mitter <committer@example.com> end: completed after 2 steps",
        'checker <uwf-mock@uwf> checker: {"ok": true}',
        "writer <uwf-mock@uwf> writer: attempt 1 failed: exit status 1",
        "writer <uwf-mock@uwf> writer: An old silent pond",
        "C O Mitter <committer@example.com> start: Write a haiku.",
    ]


def test_git_shows_nodes_and_the_present_as_files(store: Store, git: Git) -> None:
    snapshot = read_snapshot(store, get_head(store, ENDED).commit)
    step = snapshot.get_head_node()
    head = json.loads(git("show", f"{REFS[0]}:head.json", cwd=Path(store.path)))
    assert (head["type"], head["payload"]) == (step.type, step.payload)
    now = json.loads(git("show", f"{REFS[0]}:now.json", cwd=Path(store.path)))
    assert now == snapshot.get_present().as_document()
    name = step.payload["content"]["$ref"]
    path = f"nodes/{name[0]}/{name[1]}/{name[2:]}.md"
    text = git("show", f"{REFS[0]}:{path}", cwd=Path(store.path))
    assert text.endswith("\n---\n---\nUwf-Status: completed\r\nümläut")


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


def test_a_gc_that_prunes_at_once_keeps_everything(store: Store, git: Git) -> None:
    before = whole_of(store)
    git("reflog", "expire", "--expire=now", "--all", cwd=Path(store.path))
    git("pack-refs", "--all", cwd=Path(store.path))
    git("gc", "--quiet", "--prune=now", "--aggressive", cwd=Path(store.path))
    assert not list(Path(store.path, "objects").glob("??"))
    assert whole_of(open_store(store.path)) == before
    assert git("fsck", "--strict", "--full", cwd=Path(store.path)) == ""


def test_a_step_after_a_gc_joins_what_is_packed(
    store: Store, clock: Callable[[], int], git: Git
) -> None:
    git("gc", "--quiet", "--prune=now", cwd=Path(store.path))
    again = open_store(store.path)
    story = Story.__new__(Story)
    story.store, story.clock, story.thread = again, clock, ACTIVE
    story.head = get_head(again, ACTIVE)
    story.step(text="after the gc")
    git("gc", "--quiet", "--prune=now", cwd=Path(store.path))
    chain = read_snapshot(open_store(store.path), story.head.commit).walk_chain()
    assert len(list(chain)) == 3
    assert git("fsck", "--strict", "--full", cwd=Path(store.path)) == ""


def test_a_mirror_clone_is_the_whole_store(store: Store, git: Git, tmp_path: Path) -> None:
    git("clone", "--quiet", "--mirror", store.path, "copy.git", cwd=tmp_path)
    copy = open_store(str(tmp_path / "copy.git"))
    assert whole_of(copy) == whole_of(store)


def test_a_plain_clone_brings_no_thread_but_a_refspec_does(
    store: Store, git: Git, tmp_path: Path
) -> None:
    git("clone", "--quiet", store.path, "plain", cwd=tmp_path)
    assert git("for-each-ref", cwd=tmp_path / "plain") == ""
    refspec = "remote.origin.fetch=+refs/threads/*:refs/threads/*"
    git("clone", "--quiet", "-c", refspec, store.path, "asked", cwd=tmp_path)
    assert list_threads(open_store(str(tmp_path / "asked")), archived=False) == [ACTIVE]


@pytest.mark.parametrize(("ref", "thread"), [(REFS[0], ENDED), (REFS[2], ACTIVE)])
def test_pushing_one_ref_shares_a_thread_whole(
    store: Store, git: Git, tmp_path: Path, ref: str, thread: str
) -> None:
    git("init", "--quiet", "--bare", "hub.git", cwd=tmp_path)
    git("config", "receive.fsckObjects", "true", cwd=tmp_path / "hub.git")
    git("push", "--quiet", "../hub.git", f"{ref}:{ref}", cwd=Path(store.path))
    hub = open_store(str(tmp_path / "hub.git"))
    assert git("for-each-ref", "--format=%(refname)", cwd=tmp_path / "hub.git").split() == [ref]
    snapshot = read_snapshot(hub, get_head(hub, thread).commit)  # type: ignore[arg-type]  # an id
    reached = list(walk_closure([snapshot.record.node], snapshot.get_node))
    assert WORKFLOW in reached
    assert len(list(walk_history(hub, snapshot.commit.oid))) >= 2
    assert git("fsck", "--strict", "--full", cwd=tmp_path / "hub.git") == ""


def test_every_ref_passes_the_checks_of_a_server(store: Store, git: Git, tmp_path: Path) -> None:
    git("init", "--quiet", "--bare", "hub.git", cwd=tmp_path)
    git("config", "receive.fsckObjects", "true", cwd=tmp_path / "hub.git")
    git("push", "--quiet", "--mirror", "../hub.git", cwd=Path(store.path))
    assert whole_of(open_store(str(tmp_path / "hub.git"))) == whole_of(store)


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
