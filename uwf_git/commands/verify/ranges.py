"""Check the commits of a project's files that the steps of threads name, where the project is."""

from collections.abc import Iterable, Iterator

from uwf_git.commands.verify.finding import Finding
from uwf_git.commands.verify.targets import Target
from uwf_git.commands.worktree.chain import Chain, Made, find_chain
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.snapshot import Snapshot, read_at


def check_ranges(store: Store, targets: Iterable[Target]) -> Iterator[tuple[bool, Finding]]:
    """Yield what is wrong with threads' files here, and whether that is a problem."""
    for target in targets:
        if target.kind not in {"active", "archive"} or target.tip is None:
            continue
        steps = [each for each in walk_history(store, target.tip) if each.record.files is not None]
        if not steps:
            continue
        chain = find_chain(store, ThreadId(target.name), store.environ, is_reading=True)
        log = [] if chain is None else chain.read_log()
        if chain is None or not log:
            yield (
                False,
                Finding(
                    f"the files of thread {target.name} are not here, and were not checked",
                    "fetch them into the project: docs/files.md",
                    target.ref,
                ),
            )
            continue
        places = {made.commit: number for number, made in enumerate(log)}
        for step in steps:
            problem = _find_problem(step, log, places)
            if problem is not None:
                yield True, _lost(step, chain, problem, target.ref)


def _find_problem(step: Snapshot, log: list[Made], places: dict[str, int]) -> str | None:
    before, _, after = (step.record.files or "").partition("..")
    if before not in places or after not in places:
        return "which are not both there"
    if places[before] <= places[after]:
        return "which are in another order there"
    made = log[places[after]]
    turn = read_at(step.objects, step.commit.parents[0]).turn_start
    if (made.thread, made.after) != (step.record.thread, turn):
        return f"but {after} was made by another turn"
    return None


def _lost(step: Snapshot, chain: Chain, problem: str, ref: str) -> Finding:
    return Finding(
        f"a {step.record.event} names the files {step.record.files} of {chain.ref} in "
        f"{chain.worktree}, {problem}",
        "another copy of the project may have them: `git fetch` that ref from there",
        ref,
        step.commit.oid,
    )
