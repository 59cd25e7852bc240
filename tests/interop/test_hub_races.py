"""Two stores share threads through a hub while git maintains all three: nothing is lost."""

import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from commands.crowd import at_once
from commands.world import World, replied
from conftest import Draws
from interop.honest_flows import git
from interop.hub import Hub, fetch_all, make_hub, push_all

from uwf_git.commands.start import StartRequest, start_thread
from uwf_git.commands.turn.branches import ThreadNotActive
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.verify.verify import verify
from uwf_git.errors import Conflict, UwfError
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, list_threads
from uwf_git.store.threads.history import KEPT, walk_history

ACTIONS = 25
MOST_STEPS = 4
MOST_ACTIVE = 4

REQUEST = StartRequest("demo", "Do it.", ("nobody",))

# What may go on beside steps (docs/store.md, "Keep it small").
BESIDE = (
    ("gc", "--quiet"),
    ("repack", "-adkq"),
    ("pack-refs", "--all", "--prune"),
    ("maintenance", "run", "--quiet", "--task=loose-objects", "--task=incremental-repack"),
    ("maintenance", "run", "--quiet", "--task=commit-graph", "--task=pack-refs"),
)
ALONE = (("gc", "--quiet", "--prune=now"), ("repack", "-adq"))

# git leaves what others are at work on, and says so; and it wants packs before it indexes them.
HARMLESS = ("Unable to create", "cannot lock", "no pack files to index")


# A push that met another one.
OVERTAKEN = ("history is never rewritten", "is archived here", "is never moved; it ended at")


class Seen(NamedTuple):
    """What somebody saw of a repository: each value of each ref."""

    refs: dict[str, list[str]]

    def look(self, path: str) -> None:
        """Look at the threads."""
        for name, commit in refs_of(path).items():
            found = self.refs.setdefault(name.rpartition("/")[2], [])
            if commit not in found:
                found.append(commit)


def test_nothing_is_lost_between_two_stores_and_a_hub(tmp_path: Path, draws: Draws) -> None:
    hub = make_hub(tmp_path)
    sites = [hub.clone(), hub.clone()]
    sites[0].put()
    push_all(sites[0])
    fetch_all(sites[1])
    paths = [str(hub.path), *(site.store.path for site in sites)]
    done: list[str] = []
    for _number in draws.rounds(2):
        seeds = [draws.chance.random() for _ in range(5)]
        told = at_once(5, lambda at: act(at, seeds[at], hub, sites))  # noqa: B023 (run at once)
        assert [each for each in told if not isinstance(each, dict)] == []
        done += [text for each in told for text in each.get("done", ())]
        for path in paths:
            for words in ALONE:
                run_git(path, words)
        settle(sites)
        check_round(paths, told)
    check_end(sites, done)
    ended = sum(name.startswith(ARCHIVE) for name in refs_of(paths[0]))
    print(f"{len(done)} steps, {ended} threads ended; lost 0")  # noqa: T201 - for `pytest -rA`


def act(number: int, seed: float, hub: Hub, sites: list[World]) -> dict[str, Any]:
    """Be one of two sites, or what maintains one of three repositories."""
    chance = random.Random(seed)
    if number < len(sites):
        return live(sites[number], number, chance)
    path = [str(hub.path), *(site.store.path for site in sites)][number - len(sites)]
    return maintain(path, chance)


def live(world: World, number: int, chance: random.Random) -> dict[str, Any]:
    """Start threads, step them, push and fetch; return what was done and seen."""
    seen = Seen({})
    done: list[str] = []
    for at in range(ACTIONS):
        world.reopen()
        active = list_threads(world.store, archived=False)
        what = chance.choice(["start", "step", "step", "step", "push", "fetch"])
        with conflicts():
            if what == "push":
                push_all(world)
            elif what == "fetch":
                fetch_all(world)
            elif (what == "start" and len(active) < MOST_ACTIVE) or not active:
                name = ThreadId(f"01J{number}{chance.randrange(10**22):022d}")
                start_thread(world.store, world.caller, REQUEST, thread=name)
            else:
                play = says(f"site {number}, action {at}, {chance.random()}", done)
                world.step(chance.choice(active), play, command="mine", workdir=str(world.place))
        seen.look(world.store.path)
    return {"done": done, "seen": seen.refs, "path": world.store.path}


def says(text: str, done: list[str]) -> Callable[[Turn], Played]:
    """Return a player that says this, notes it, and lets the thread end after some steps."""

    def play(turn: Turn) -> Played:
        done.append(text)
        if turn.role == "writer":
            return replied({"text": text}, text * 20)
        return replied({"ok": turn.snapshot.record.depth >= MOST_STEPS - 1, "text": text}, text)

    return play


@contextmanager
def conflicts() -> Iterator[None]:
    """Let others be faster."""
    try:
        yield
    except UwfError as error:
        is_told = any(map(error.message.__contains__, OVERTAKEN))
        if not (isinstance(error, Conflict | ThreadNotActive) or is_told):
            raise


def maintain(path: str, chance: random.Random) -> dict[str, Any]:
    """Maintain a repository for a while; return what was seen of it."""
    seen = Seen({})
    for _ in range(ACTIONS):
        run_git(path, chance.choice(BESIDE))
        seen.look(path)
    return {"seen": seen.refs, "path": path}


def run_git(path: str, words: tuple[str, ...]) -> None:
    """Run git there."""
    ran = subprocess.run(["git", *words], cwd=path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0 or any(map(ran.stderr.__contains__, HARMLESS)), ran.stderr


def refs_of(path: str, *more: str) -> dict[str, str]:
    """Return the refs of all threads."""
    form = "--format=%(refname) %(objectname)"
    listed = git("for-each-ref", form, ACTIVE, ARCHIVE, *more, cwd=path)
    return dict(line.split() for line in listed.splitlines())


def settle(sites: list[World]) -> None:
    """Push and fetch until each has what the others have."""
    for site in [*sites, *sites]:
        for exchange in (fetch_all, push_all):
            with conflicts():
                exchange(site)


def check_round(paths: list[str], told: list[dict[str, Any]]) -> None:
    """Check that git finds nothing wrong, and that no thread went back."""
    for path in paths:
        run = ["git", "fsck", "--strict", "--full", "--no-dangling", "--no-progress"]
        ran = subprocess.run(run, cwd=path, capture_output=True, text=True, check=False)
        said = [line for line in ran.stderr.splitlines() if not line.startswith("notice: ")]
        assert (ran.returncode, ran.stdout, said) == (0, "", [])
    for each in told:
        now = {name.rpartition("/")[2]: commit for name, commit in refs_of(each["path"]).items()}
        for thread, commits in each["seen"].items():
            listed = git("rev-list", now[thread], cwd=each["path"]).split()
            assert set(commits) <= set(listed), f"{thread} went back"


def check_end(sites: list[World], done: list[str]) -> None:
    """Check that each step that was taken is in a store, once."""
    found: dict[str, set[str]] = {}
    for site in sites:
        site.reopen()
        assert verify(site.store, []).troubles == ()
        for tip in refs_of(site.store.path, KEPT).values():
            for snapshot in walk_history(site.store, Oid(tip), through_forks=True):
                if snapshot.record.event == "step":
                    text = snapshot.get_head_node().payload["meta"]["text"]
                    found.setdefault(text, set()).add(snapshot.commit.oid)
    assert sorted(found) == sorted(done)
    assert {text: each for text, each in found.items() if len(each) > 1} == {}
