import subprocess
from pathlib import Path

import pytest
from commands.world import DEMO, World, says
from refusing import refuses

from uwf_git.commands.remote.reconcile import Reconciled, reconcile_thread, reconcile_workflow
from uwf_git.commands.verify.verify import verify
from uwf_git.model.names import Oid
from uwf_git.store.remotes.remotes import Remote
from uwf_git.store.threads.heads import HeadMoved

REMOTE = Remote("origin", "nowhere")
UNKNOWN = Oid("9" * 40)


class Tale:
    """A thread of which every commit is at hand, and no ref is left."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.thread = world.begun()
        self.one = self._tip("threads")
        world.step(self.thread, says({"text": "another way"}), command="mine")
        self.other = self._tip("threads")
        refs = world.store.refs
        assert refs.delete(f"refs/threads/{self.thread}", seen=self.other)
        assert refs.create(f"refs/threads/{self.thread}", self.one)
        world.step(self.thread, command="mine")
        self.two = self._tip("threads")
        world.step(self.thread, command="mine")
        while world.step(self.thread, command="mine").role is not None:
            pass
        self.end = self._tip("archive")
        assert refs.delete(f"refs/archive/{self.thread}", seen=self.end)

    def _tip(self, folder: str) -> Oid:
        oid = self.world.store.refs.find(f"refs/{folder}/{self.thread}")
        assert oid is not None
        return oid

    def lay(self, **refs: str) -> None:
        """Lay the refs out: here_threads="one", there_archive="end"."""
        for name, which in refs.items():
            place, _, folder = name.partition("_")
            prefix = "refs/" if place == "here" else REMOTE.tracking
            oid = getattr(self, which, UNKNOWN)
            assert self.world.store.refs.create(f"{prefix}{folder}/{self.thread}", oid)

    def settle(self) -> Reconciled:
        """Settle the thread."""
        return reconcile_thread(self.world.store, REMOTE, self.thread)

    @property
    def here(self) -> dict[str, Oid]:
        """Where it is here."""
        refs = self.world.store.refs
        found = {each: refs.find(f"refs/{each}/{self.thread}") for each in ("threads", "archive")}
        return {each: oid for each, oid in found.items() if oid is not None}


@pytest.fixture
def tale(world: World) -> Tale:
    return Tale(world)


TABLE = [
    ({}, "unchanged", {}),
    ({"there_threads": "two"}, "created", {"threads": "two"}),
    ({"there_archive": "end"}, "created", {"archive": "end"}),
    ({"there_archive": "end", "there_threads": "two"}, "created", {"archive": "end"}),
    ({"here_threads": "one"}, "unchanged", {"threads": "one"}),
    ({"here_threads": "one", "there_threads": "one"}, "unchanged", {"threads": "one"}),
    ({"here_threads": "one", "there_threads": "two"}, "moved", {"threads": "two"}),
    ({"here_threads": "two", "there_threads": "one"}, "unchanged", {"threads": "two"}),
    ({"here_threads": "two", "there_threads": "other"}, "diverged", {"threads": "two"}),
    ({"here_threads": "two", "there_archive": "end"}, "archived", {"archive": "end"}),
    ({"here_threads": "other", "there_archive": "end"}, "diverged", {"threads": "other"}),
    ({"here_archive": "end", "there_threads": "two"}, "unchanged", {"archive": "end"}),
    ({"here_archive": "end", "there_threads": "other"}, "diverged", {"archive": "end"}),
    ({"here_archive": "end", "there_archive": "end"}, "unchanged", {"archive": "end"}),
    ({"here_archive": "end", "here_threads": "two"}, "unchanged", {"archive": "end"}),
    (
        {"here_archive": "end", "here_threads": "other"},
        "diverged",
        {"archive": "end", "threads": "other"},
    ),
    ({"here_archive": "end", "there_archive": "other"}, "diverged", {"archive": "end"}),
    ({"here_threads": "two", "there_archive": "other"}, "refused", {"threads": "two"}),
    ({"here_threads": "two", "there_threads": "unknown"}, "refused", {"threads": "two"}),
    ({"there_threads": "unknown"}, "refused", {}),
    ({"there_archive": "two"}, "refused", {}),
    ({"there_threads": "end"}, "refused", {}),
    ({"here_threads": "one", "there_archive": "two"}, "refused", {"threads": "one"}),
]


@pytest.mark.parametrize(("refs", "event", "after"), TABLE)
def test_the_table_is_kept(
    tale: Tale, refs: dict[str, str], event: str, after: dict[str, str]
) -> None:
    tale.lay(**refs)
    reconciled = tale.settle()
    assert reconciled.event == event
    assert (reconciled.finding is not None) == (event == "refused")
    assert tale.here == {folder: getattr(tale, which) for folder, which in after.items()}
    # Once is enough.
    assert tale.settle().event in {"unchanged", "diverged", "refused"}


def test_an_archive_that_is_taken_over_leaves_nothing_to_work_with(tale: Tale) -> None:
    world = tale.world
    tale.lay(here_threads="two", there_archive="end")
    assert (Path(world.store.path) / "uwf-workdirs").exists()
    run = Path(world.store.local_path("run", tale.thread))
    run.mkdir(parents=True)
    tale.settle()
    assert not run.exists()
    assert tale.thread not in [path.name for path in Path(world.store.path).glob("uwf-workdirs/*")]


def run_of(tale: Tale) -> Path:
    run = Path(tale.world.store.local_path("run", tale.thread, tale.one))
    run.mkdir(parents=True)
    return run


def test_a_finished_run_is_recorded_before_its_thread_moves(tale: Tale) -> None:
    tale.lay(here_threads="one", there_threads="two")
    (run_of(tale) / "exit").write_text("0\n")
    with refuses("run-unrecorded", match=tale.thread):
        tale.settle()
    assert tale.here == {"threads": tale.one}


def test_a_thread_whose_agent_lives_does_not_move(tale: Tale) -> None:
    tale.lay(here_threads="one", there_threads="two")
    run = run_of(tale)
    (run / "pid").write_text("1\n")
    script = "echo held; read _"
    holder = subprocess.Popen(
        ["flock", f"{run}.alive", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"held\n"
        with refuses("agent-left-running"):
            tale.settle()
    finally:
        holder.communicate(b"")
    assert tale.here == {"threads": tale.one}


def test_a_thread_created_meanwhile_is_a_conflict(
    tale: Tale, monkeypatch: pytest.MonkeyPatch
) -> None:
    tale.lay(there_threads="two")
    monkeypatch.setattr(type(tale.world.store.refs), "create", lambda *_words: False)
    with pytest.raises(HeadMoved):
        tale.settle()


def test_a_malformed_ref_file_is_refused(tale: Tale) -> None:
    tale.lay(there_threads="two")
    Path(tale.world.store.path, REMOTE.tracking, "threads", tale.thread).write_text("nonsense\n")
    assert tale.settle().event == "refused"


@pytest.fixture
def versions(world: World) -> list[Oid]:
    """Return two versions of the workflow demo, and another second one; no ref is left."""
    refs, ref, found = world.store.refs, "refs/workflows/demo", []
    for words in ("Writes.", "Writes well."):
        world.put(DEMO.replace("Writes.", words))
        found.append(refs.find(ref) or UNKNOWN)
    assert refs.delete(ref, seen=found[1])
    assert refs.create(ref, found[0])
    world.put(DEMO.replace("Writes.", "Writes badly."))
    found.append(refs.find(ref) or UNKNOWN)
    assert refs.delete(ref, seen=found[2])
    return found


@pytest.mark.parametrize(
    ("sides", "event", "after"),
    [
        ((None, None), "unchanged", None),
        ((None, 1), "created", 1),
        ((0, 1), "moved", 1),
        ((1, 0), "unchanged", 1),
        ((1, 1), "unchanged", 1),
        ((1, None), "unchanged", 1),
        ((1, 2), "diverged", 1),
    ],
)
def test_workflows_only_go_forward(
    world: World,
    versions: list[Oid],
    sides: tuple[int | None, int | None],
    event: str,
    after: int | None,
) -> None:
    refs = world.store.refs
    for prefix, which in zip(("refs/", REMOTE.tracking), sides, strict=True):
        if which is not None:
            refs.create(f"{prefix}workflows/demo", versions[which])
    assert reconcile_workflow(world.store, REMOTE, "demo").event == event
    assert refs.find("refs/workflows/demo") == (None if after is None else versions[after])


def test_an_invalid_workflow_is_refused(world: World, tale: Tale) -> None:
    world.store.refs.create(f"{REMOTE.tracking}workflows/x", tale.one)
    assert reconcile_workflow(world.store, REMOTE, "x").event == "refused"
    world.store.refs.create(f"{REMOTE.tracking}workflows/y", UNKNOWN)
    assert reconcile_workflow(world.store, REMOTE, "y").event == "refused"


@pytest.mark.parametrize("folder", ["threads", "archive"])
def test_a_ref_to_a_commit_that_is_lost_is_not_another_way(tale: Tale, folder: str) -> None:
    tale.lay(**{f"here_{folder}": "lost"}, there_archive="end")
    reconciled = tale.settle()
    assert (reconciled.event, reconciled.tracked) == ("refused", None)
    assert reconciled.finding is not None
    assert f"git update-ref -d refs/{folder}/{tale.thread}" in reconciled.finding.hint


def test_a_workflow_ref_to_a_commit_that_is_lost_is_not_another_way(world: World) -> None:
    world.put(DEMO)
    refs = world.store.refs
    there = refs.find("refs/workflows/demo")
    assert there is not None
    assert refs.create(f"{REMOTE.tracking}workflows/demo", there)
    assert refs.advance("refs/workflows/demo", seen=there, to=UNKNOWN)
    reconciled = reconcile_workflow(world.store, REMOTE, "demo")
    assert reconciled.event == "refused"
    assert reconciled.finding is not None
    assert "git update-ref -d refs/workflows/demo" in reconciled.finding.hint
    assert "`uwf fetch REMOTE`" in verify(world.store, []).troubles[0].hint
