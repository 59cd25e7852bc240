"""`uwf thread graph`: what the picture of a thread shows."""

import json
from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.commands.inspect import story
from uwf_git.commands.inspect.list import DAMAGED, UNREADABLE, count_branches, view_urgent
from uwf_git.commands.inspect.show import (
    Moment,
    ShownThread,
    read_moment,
    read_spent,
    show_thread,
    view_files,
    view_steps,
    view_thread,
)
from uwf_git.commands.split import Container, find_container, label_branch, read_entry
from uwf_git.commands.turn.flow import count_own
from uwf_git.commands.verify.history import SignatureReader
from uwf_git.commands.verify.thread import judge_derived
from uwf_git.commands.workflow.build import view_moves
from uwf_git.engine.picture import plan
from uwf_git.engine.picture.plan import Mark
from uwf_git.errors import StoreDamaged, UwfError
from uwf_git.model.event_folds import count_steps
from uwf_git.model.event_rules import STEPS
from uwf_git.model.flow import Flow, NotAPosition, Position, parse_position
from uwf_git.model.limits import tell_limit
from uwf_git.model.names import Oid, ThreadId
from uwf_git.model.text import first_line
from uwf_git.model.thread import ENDED, Split
from uwf_git.model.workflow import END, START, Graph
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, find_head, get_head
from uwf_git.store.threads.history import (
    Snapshot,
    find_newest_step,
    get_workflow,
    read_at,
    read_snapshot,
    walk_history,
)
from uwf_git.store.threads.naming import resolve_head

# Every step of a thread, and inside a join the steps of the branches that it joined.


def view_all_steps(store: Store, tip: Snapshot) -> list[dict[str, Any]]:
    """Return the documents of all steps, oldest first; joins with ``branches``."""
    history = walk_history(store, tip.commit.oid, through_forks=True)
    # After a poke an equal step has the same node; the newest, here the last, counts.
    taken = list(story.count_failed(history))[::-1]
    failed = {each.record.node: count for each, count in taken}
    named = {each.record.node: each.record.files for each, _ in taken if each.record.files}
    files = view_files(store, tip.record.thread, list(named.values())) if named else {}
    joins = {each.record.node: each for each, _ in taken if each.record.event == "join"}
    steps: list[dict[str, Any]] = []
    for view in view_steps(tip):
        step = {**view, "failedAttempts": failed.get(view["hash"], 0)}
        if view["hash"] in named:
            step["files"] = files[named[view["hash"]]]
        if view["hash"] in joins:
            container, tips = _read_joined(joins[view["hash"]])
            step["branches"] = [
                {**_view_branch(container, number, branch), "steps": view_all_steps(store, branch)}
                for number, branch in enumerate(tips)
            ]
        steps.append(step)
    return steps


def add_steps(store: Store, rows: list[dict[str, Any]]) -> None:
    """Add to each row of ``view_branches`` the steps of that branch, and of its own branches."""
    for row in rows:
        head = find_head(store, row["thread"])
        if head is not None and row["status"] not in {DAMAGED, UNREADABLE}:
            row["steps"] = view_all_steps(store, read_snapshot(store, head.commit))
        add_steps(store, row.get("branches", []))


def view_given_up(tip: Snapshot) -> list[dict[str, Any]]:
    """Return the branches that the join at *tip* goes on without, each with ``error``."""
    join = find_newest_step(tip)
    if join.record.event != "join":
        return []
    container, _ = _read_joined(join)
    return [
        {**_view_branch(container, number, each), "error": tell_given_up(each)}
        for number, each in find_given_up(join).items()
    ]


def find_given_up(join: Snapshot) -> dict[int, Snapshot]:
    """Return the branches, by number, that *join* goes on without; {} if one branch was enough."""
    container, tips = _read_joined(join)
    killed = {number: tip for number, tip in enumerate(tips) if tip.record.status == "killed"}
    return {} if container.policy.get("join") == "any" else killed


def tell_given_up(tip: Snapshot) -> str:
    return first_line(tip.body) or "killed"


def _read_joined(join: Snapshot) -> tuple[Container, list[Snapshot]]:
    before, *tips = (read_at(join.objects, oid) for oid in join.commit.parents)
    return find_container(before, join.record.at or ""), tips


def _view_branch(container: Container, number: int, tip: Snapshot) -> dict[str, Any]:
    return {
        "number": number,
        "label": label_branch(container, number, tip),
        "thread": tip.record.thread,
        "status": tip.record.status,
        "depth": tip.record.depth,
    }


# How many steps each place of a flow took, from the commits of its thread.


class StepsAt(NamedTuple):
    commits: frozenset[Oid] = frozenset()

    positions: frozenset[str] = frozenset()
    """Where in the flow the steps were taken; each has a position of its own."""

    by_place: Mapping[str, int] = {}
    """How many steps each place of the flow took."""

    given_up: Mapping[str, str] = {}
    """Place where a branch began that the newest join there goes on without → its error."""


_NOTHING = StepsAt()


def find_steps_at(store: Store, tip: Oid, *, most: int, before: StepsAt = _NOTHING) -> StepsAt:
    """Find the steps of the thread at *tip*, with the steps of joined branches.

    That costs a look at each commit except *before*, which has the steps of a branch's thread. If
    there are more than *most*, no step is returned. Steps before damage, steps that were redone,
    and steps of other workflows are left out.
    """
    seen, positions, by_place = set(before.commits), set(before.positions), Counter(before.by_place)
    given_up: dict[str, dict[str, str]] = {}
    pending = [tip]
    while pending:
        with suppress(StoreDamaged):
            for snapshot in _walk(store, pending.pop(), seen, most):
                if snapshot.record.event == "join":
                    joined = (read_snapshot(store, oid) for oid in snapshot.commit.parents[1:])
                    pending += [each.commit.oid for each in joined if _is_within_flow(each)]
                    for place in _list_places(snapshot.record.at or ""):
                        if place not in given_up:
                            given_up[place] = _find_given_up(snapshot)
                elif (at := snapshot.record.at) is not None and at not in positions:
                    positions.add(at)
                    by_place.update(_list_places(at))
    told = by_place if len(seen) <= most else Counter[str]()
    ends = ChainMap(*given_up.values()) if len(seen) <= most else {}
    return StepsAt(frozenset(seen), frozenset(positions), told, ends)


def _find_given_up(join: Snapshot) -> dict[str, str]:
    entries = [(read_entry(tip), tip) for tip in find_given_up(join).values()]
    return {entry.place: tell_given_up(tip) for entry, tip in entries if entry is not None}


def _walk(store: Store, tip: Oid, seen: set[Oid], most: int) -> Iterator[Snapshot]:
    """Yield joins, and steps that count, from *tip* back to where its flow began.

    Each commit is added to *seen*, until these are more than *most*.
    """
    redone = 0
    oid: Oid | None = tip
    while oid is not None and oid not in seen and len(seen) <= most:
        seen.add(oid)
        snapshot = read_snapshot(store, oid)
        event = snapshot.record.event
        if event == "poke":
            redone += 1
        elif event in STEPS and redone:
            redone -= 1
        elif event in STEPS:
            yield snapshot
        goes_on = event != "start" or _is_within_flow(snapshot)
        oid = next(iter(snapshot.commit.parents), None) if goes_on else None


def _is_within_flow(snapshot: Snapshot) -> bool:
    """Check whether a thread is a branch that runs a part of its parent's flow."""
    return "entry" in snapshot.get_start().payload


def _list_places(at: str) -> list[str]:
    """Return the place of a position in a list; [] for any other text."""
    with suppress(NotAPosition):
        return [parse_position(at).place]
    return []


# Of longer threads a role's steps are not counted by place.
_MOST_COMMITS = 1_000


def picture_thread(store: Store, text: str) -> plan.Subject:
    """Return what the picture of a thread shows; branches that cannot be read are left out."""
    shown = view_thread(store, text, with_family=False)
    document, snapshot = shown.document, shown.snapshot
    status = document["status"]
    urgent = view_urgent(status, count_branches(store, snapshot)).get("branchStatus", status)
    steps = count_steps(read_spent(store, snapshot, snapshot.get_present()).depth)
    headline = f"thread {document['thread']}, {urgent}, {steps}"
    workflow = get_workflow(snapshot, snapshot.get_present().workflow)

    def mark(moves: Graph | Flow) -> plan.ThreadMarks:
        return plan.ThreadMarks(headline, _mark(store, shown, moves))

    return view_moves(workflow, snapshot.get_node, mark)


def read_progress(shown: ShownThread) -> plan.Progress:
    document, move = shown.document, shown.move
    running = document.get("running") or {}
    present = shown.snapshot.get_present()
    tried, view = "", document.get("try")
    if view is not None and present.tried is not None:
        of = f" of {view['of']}" if "of" in view else ""
        tried = f"try {view['number']}{of}, {view['turn']}"
    return plan.Progress(
        status=shown.snapshot.record.status,
        visits=count_own(shown.snapshot, present),
        turn=END if move.role == END else document["currentNode"],
        attempts=document["attempts"],
        is_at_work=running.get("role") is not None,
        waits_for_limit="until" in (document.get("waiting") or {}),
        last=document["lastNode"] or START,
        tried=tried,
    )


def _mark(
    store: Store, shown: ShownThread, moves: Graph | Flow, before: StepsAt = _NOTHING
) -> dict[str, Mark]:
    """Return the marks of a thread; for a branch *before* has the steps of its thread."""
    progress, split = read_progress(shown), shown.snapshot.get_present().split
    if not isinstance(moves, Flow):
        marks = plan.mark_roles(progress)
        return marks if split is None else marks | _mark_branches(store, shown, split, None)
    steps = before
    nodes = moves.nodes.values()
    may_give_up = any(node.fields.get("onError") == "continue" for node in nodes)
    uses = any(node.kind == "workflow" for node in nodes)
    if may_give_up or uses or plan.list_shared_roles(moves):
        steps = find_steps_at(store, shown.snapshot.commit.oid, most=_MOST_COMMITS, before=before)
        progress = progress._replace(steps_at=steps.by_place, given_up=steps.given_up)
    if uses and len(steps.commits) <= _MOST_COMMITS:
        # A workflow that is used may have a role of the same name.
        by_role = {
            node.agent: steps.by_place.get(place, 0)
            for place, node in moves.nodes.items()
            if node.kind == "agent"
        }
        progress = progress._replace(visits=by_role)
    entry = read_entry(shown.snapshot)
    within = None if entry is None else entry.place
    marks = plan.mark_places(moves, progress, _find_position(shown, progress), within=within)
    return marks if split is None else marks | _mark_branches(store, shown, split, moves, steps)


def _find_position(shown: ShownThread, progress: plan.Progress) -> Position | None:
    """Return where the thread stands in its flow; None if that is unknown, or it is at its end."""
    present = shown.snapshot.get_present()
    at = shown.move.at or present.trying
    if at is None and progress.status != "ready":
        at = present.at
    with suppress(NotAPosition):
        return None if at is None else parse_position(at)
    return None


def _mark_branches(
    store: Store, shown: ShownThread, split: Split, flow: Flow | None, steps: StepsAt = _NOTHING
) -> dict[str, Mark]:
    """Return the marks of a thread's branches, except branches with a workflow of their own."""
    own = shown.snapshot.record.workflow
    is_many = len(split.children) > plan.MOST_ALIKE
    branches: list[dict[str, Mark]] = []
    ended = 0
    for child in split.children:
        marks: dict[str, Mark] = {}
        with suppress(UwfError, NotAPosition):
            moment = read_moment(store, get_head(store, child.thread))
            record = moment.snapshot.record
            ended += record.status in ENDED
            if flow is not None and record.workflow == own:
                if is_many:
                    marks = _mark_moment(moment, flow)
                else:
                    branch = view_thread(store, child.thread, with_family=False)
                    marks = _mark(store, branch, flow, steps)
        branches.append(marks)
    place = split.at if flow is None else parse_position(split.at).place
    return plan.mark_split(place, ended, branches)


def _mark_moment(moment: Moment, flow: Flow) -> dict[str, Mark]:
    """Return the marks of one of many branches, from its newest commit alone."""
    present = moment.snapshot.get_present()
    entry = read_entry(moment.snapshot)
    status = moment.snapshot.record.status
    at = present.trying or present.at
    if at is None:
        position = entry
    elif present.trying is None and status == "ready":
        # Which place is next after a step is not decided for many.
        position = None
    else:
        position = parse_position(at)
    progress = plan.Progress(
        status=status,
        visits=present.visits,
        attempts=present.attempts,
        is_at_work=moment.running is not None,
        # Of a branch that is one agent; in others a role may play at several places.
        steps_at={} if entry is None else {entry.place: present.depth},
    )
    return plan.mark_places(flow, progress, position, within=None if entry is None else entry.place)


# A thread as one document: how it stands, all that happened, what it cost, what is damaged.
#
# Plain values, keys masked: the report and the page are made of it. It has nothing of the machine
# but the thread's present, so the same store gives the same document.

_SHOWN = (
    "workflow", "workflowName", "status", "depth", "parentThread", "branchOf",
    "startTime", "lastUpdateTime", "endTime", "error", "attempts", "agents", "agentSettings",
    "state", "said", "next", "waiting", "question", "reason", "by", "hint", "heldBy", "diverged",
)  # fmt: skip
_ASKED = ("role", "description", "systemPrompt", "fields")


class ThreadReport(NamedTuple):
    document: dict[str, Any]
    picture: plan.Subject | None
    """None: the thread or its workflow cannot be read."""


def report_of_damage(thread: str, problems: list[str]) -> StoreDamaged:
    """Return the error after a report was made of a thread that cannot be read whole."""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return StoreDamaged(
        f"the report of thread {thread} is not whole: {problems[0]}{more}",
        code="report-of-damage",
        hint=f"`uwf verify {thread}` checks all of it",
        thread=thread,
        problems=problems,
    )


def view_report(store: Store, text: str, environ: Mapping[str, str]) -> ThreadReport:
    """Return the report of the thread *text*, masked; ``problems`` has what cannot be read."""
    head = resolve_head(store, text)
    mask = story.make_mask(environ)
    problems: list[str] = []
    present: dict[str, Any] = {}
    picture = None
    try:
        present = view_present(store, head.thread, mask)
        picture = picture_thread(store, head.thread)
    except UwfError as error:
        problems.append(mask(error.message))
    signatures = SignatureReader(store, environ, judge_derived())
    reader = story.StoryReader(store, story.Telling(mask, read_signature=signatures.read))
    entries = reader.read(head.thread, head.commit, through_forks=True)
    problems += story.find_problems(entries)
    document = {
        "thread": head.thread,
        "ref": f"{ARCHIVE if head.archived else ACTIVE}{head.thread}",
        "commit": head.commit,
        **present,
        "totals": story.add_up(entries),
        "entries": entries,
        "signatureProblem": None if signatures.problem is None else mask(signatures.problem),
        "problems": list(dict.fromkeys(problems)),
    }
    return ThreadReport(document, picture)


def view_present(store: Store, thread: ThreadId, mask: story.Mask) -> dict[str, Any]:
    """Return how *thread* stands; it raises what ``show_thread`` raises."""
    shown = show_thread(store, thread)
    present = {name: story.mask_json(shown[name], mask) for name in _SHOWN if name in shown}
    commit = shown["commit"]
    text = str(shown["prompt"])
    present["title"] = mask(first_line(text))
    present["prompt"] = story.cut_text(
        text, mask, f"git show {commit}:start.json", most=story.CONTENT_BYTES
    )
    state = json.dumps(present["state"], ensure_ascii=False, indent=2)
    cut = story.cut_text(state, mask, f"git show {commit}:now.json", most=story.CONTENT_BYTES)
    present["state"] = cut if cut["isCut"] else {"value": present["state"]}
    asked = present.pop("question", None)
    if isinstance(asked, dict):
        present["question"] = {name: asked[name] for name in _ASKED if name in asked}
    limits = shown["limits"].items()
    return {**present, "limits": {name: tell_limit(name, limit) for name, limit in limits}}
