"""All commands by chance, in several processes, killed at any moment: no work is lost."""

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from commands.torture import Command, Place, Torture, find_all
from commands.world import make_store
from conftest import Draws
from interop.hub import make_hub

from uwf_git.model.names import Oid
from uwf_git.store.remotes.remotes import add_remote
from uwf_git.store.store import open_store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.threads.history import read_snapshot

COMMANDS = 80
AT_ONCE = 3
MOST_PASSES = 40

WEIGHTS = {
    "step": 6, "run": 8, "answer": 5, "resume": 4, "start": 3, "pause": 3, "retry": 2, "poke": 2,
    "patch": 4, "amend": 2, "append": 1, "fork": 1, "kill": 1, "rm": 1, "gc": 1, "fetch": 2,
    "push": 2, "verify": 1, "show": 1,
}  # fmt: skip

# What a thread needs that came from the other store.
HERE = ("--trust", "--workdir", ".")

UPON_A_THREAD: Mapping[str, Sequence[tuple[str, ...]]] = {
    "step": [HERE],
    "run": [HERE, (*HERE, "--max-steps", "2")],
    "resume": [()],
    "pause": [(), ("--now",), ("--now", "-m", "too slow")],
    "retry": [(), ("-m", "a hint")],
    "poke": [HERE, ("--no-step",)],
    # Another role is next then.
    "patch": [('{"again": true}',), ('{"again": null, "b": [2]}',)],
    "amend": [("--max-steps", "99"), ("--agent", "judge=AGENT"), ("--agent", "judge=human")],
    "append": [("more.yaml",)],
    "fork": [(), ("--at", "1")],
    "kill": [(), ("-m", "enough")],
    "show": [()],
}


def test_no_work_is_lost_or_doubled(tmp_path: Path, draws: Draws) -> None:
    told: list[str] = []
    for number in draws.rounds(2):
        place = tmp_path / f"round-{number}"
        place.mkdir()
        try:
            told.append(play(place, draws.chance))
        except BaseException as error:
            error.add_note(f"in round {number}, in {place}")
            raise
    print("\n".join(told))  # noqa: T201 - for `pytest -rA`


def play(place: Path, chance: random.Random) -> str:
    """Play one round in new stores; return what happened."""
    hub = make_hub(place)
    stores = {}
    for name in ("mine", "yours"):
        store = make_store(place / f"{name}.git")
        add_remote(store, "origin", str(hub.path), cwd=str(place))
        stores[name] = store.path
    torture = Torture(place, chance, stores)
    assert torture.do("mine", "workflow", "put", "count.yaml") == 0
    assert torture.do("mine", "push") == 0
    assert torture.do("yours", "fetch") == 0
    torture.crowd(some_commands(torture), size=AT_ONCE)
    for name in stores:
        finish(torture, name)
    for name in [*stores, *stores]:
        torture.do(name, "push")
        torture.do(name, "fetch")
    return check(torture, Place(str(hub.path)))


def some_commands(torture: Torture) -> Iterator[Command]:
    """Start commands by chance."""
    chance = torture.chance
    for number in range(COMMANDS):
        store = chance.choice(["mine", "mine", "mine", "yours"])
        words = words_of(torture, store, number)
        if chance.random() < 0.2:
            torture.kill_an_agent()
        kill = chance.random() * chance.choice([0.03, 0.1, 0.3]) if chance.random() < 0.7 else None
        yield torture.run(store, *words, kill=kill)


def words_of(torture: Torture, store: str, number: int) -> tuple[str, ...]:
    """Choose a command for a store."""
    chance, place = torture.chance, torture.stores[store]
    verb = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    active, ended = place.threads(), place.threads(ARCHIVE)
    if verb in ("gc", "fetch", "push", "verify"):
        return (verb,)
    if verb == "rm" and ended:
        thread = chance.choice(ended)
        place.before_removing(thread)
        return ("thread", "rm", thread, "--yes")
    if verb in ("start", "rm") or not active:
        agents = ["--agent", str(torture.agent)]
        agents += ["--agent", "judge=human"] if chance.random() < 0.5 else []
        return ("thread", "start", "count", "-p", f"Do {number}.", *agents)
    thread = chance.choice(active)
    if verb == "answer":
        return answer(thread, str(number))
    more = chance.choice(UPON_A_THREAD[verb])
    given = [each.replace("AGENT", str(torture.agent)) for each in more]
    return ("thread", verb, thread, *given)


def answer(thread: str, name: str) -> tuple[str, ...]:
    """Return the command by which a person answers."""
    return ("thread", "answer", thread, "--meta", f'{{"run": "answer-{thread}-{name}"}}')


def finish(torture: Torture, store: str) -> None:
    """Let all threads of a store go on to their ends."""
    place = torture.stores[store]
    for number in range(MOST_PASSES):
        active = place.refs(ACTIVE)
        if not active:
            return
        for ref, tip in active.items():
            thread = ref.removeprefix(ACTIVE)
            status = read_snapshot(open_store(place.path), Oid(tip)).record.status
            if status == "paused":
                assert torture.do(store, "thread", "resume", thread) == 0
            elif status == "failed":
                assert torture.do(store, "thread", "retry", thread) == 0
            elif status == "waiting":
                assert torture.do(store, *answer(thread, f"{store}-{number}")) == 0
            torture.do(store, "thread", "run", thread, *HERE)
    stories = [place.git("log", "-9", "--format=%s", ref) for ref in active]
    raise AssertionError(f"these do not end: {active}\n{stories}\n{torture.last_errors}")


def check(torture: Torture, hub: Place) -> str:
    """Check that every run of an agent is recorded once, and all stores are whole."""
    began, finished = torture.read_runs()
    steps: dict[str, set[str]] = {}
    anywhere: set[str] = set()
    for name, place in torture.stores.items():
        assert torture.do(name, "verify") == 0
        place.git("fsck", "--strict", "--full")
        found = find_all(place)
        for run, nodes in found.steps.items():
            steps.setdefault(run, set()).update(nodes)
        anywhere |= found.anywhere
        assert place.promised - found.names == set()
        check_seen(place)
    hub.git("fsck", "--strict", "--full")
    of_agents = {run for run in steps if run.startswith("x")}
    lost, unnamed = finished - anywhere, set(began) - anywhere
    doubled = {run: nodes for run, nodes in steps.items() if len(nodes) > 1}
    assert not of_agents - set(began), "a step without an execution"
    assert not lost, "finished work is nowhere"
    assert not unnamed, "executions without a record"
    assert not doubled, "one execution is two steps"
    return (
        f"{torture.started} commands, {torture.killed} killed, {torture.killed_agents} agents "
        f"killed; {len(began)} executions: {len(of_agents)} steps, {len(began) - len(of_agents)} "
        f"attempts; {len(steps) - len(of_agents)} answers; lost 0, doubled 0"
    )


def check_seen(place: Place) -> None:
    """Check that each thread has every commit at which it was seen: none went back."""
    tips = place.tips(ACTIVE, ARCHIVE)
    for thread, commits in place.seen.items():
        history = place.git("rev-list", *(tip for ref, tip in tips if thread in ref)).split()
        assert commits <= set(history), f"{thread} went back"
