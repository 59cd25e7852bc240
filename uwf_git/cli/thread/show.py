"""`uwf thread show`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import click

from uwf_git.cli.app.follow_up import with_short_id
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.screen import (
    Painted,
    Screen,
    count_by_status,
    describe_usage,
    emit,
    render_json,
    screen_of,
)
from uwf_git.cli.session import Session, with_typed_store
from uwf_git.commands.inspect.show import (
    Stop,
    context,
    count_failed_by_role,
    find_stop,
    view_thread,
)
from uwf_git.commands.turn.next_move import Advice
from uwf_git.model.event_folds import count_attempts, describe_files
from uwf_git.model.limits import tell_limit
from uwf_git.model.text import cut, render_duration, render_time, visible_block
from uwf_git.store.threads.naming import read_short_ids

_LONGEST_VALUE = 100
_LONGEST_STATUS = 300  # at its end is when the agent at work last said something
_LONGEST_QUESTION = 4_000
_MOST_OBJECTS = 10
_MOST_FIELDS = 30
# Of longer threads no failed tries are counted.
_MOST_COMMITS = 1_000
_HELD = {
    "split": "its branches cannot be joined",
    "limit": "a limit",
    "ready": "whose next step cannot be asked",
}
_STATUS = f"\n{'status':10}"


@verb("uwf thread show 01J7K9M2", "uwf thread show 01J7K9M2 --full --format text")
@click.argument("thread")
@click.option("--full", is_flag=True, help="Every step, not only the newest.")
def command(session: Session, thread: str, full: bool) -> None:  # noqa: FBT001 (click's way)
    """Show the state of a thread.

    Also prints the newest step; with --full, every step, oldest first. For a thread that waits for
    a person it shows the question; for one that is running, the agent and its process; for one that
    has split, its branches and what holds them up. Its `usage` and `executionTime` include those of
    its branches.
    """
    store = session.open_store()
    shown = view_thread(store, thread, full=full)

    def render(document: dict[str, Any]) -> str:
        # The move was decided for the document: another decision may cost another fork.
        stop = find_stop(store, shown.snapshot, move=shown.move, default=session.agent)
        stop = with_short_id(session, store, document["thread"], _prefer_held(stop, document))
        screen = screen_of(session)
        failed = count_failed_by_role(store, shown.snapshot.commit.oid, most=_MOST_COMMITS)
        status = document.get("branchStatus", document["status"])
        branches = [row["thread"] for _, row in _walk(document)]
        document["allSteps"] = shown.spent.depth
        shorten = read_short_ids(store, branches).shorten if session.is_screen else str
        return _paint(_text(document, screen, stop.advice.text, shorten, failed), status, screen)

    emit(session, shown.document, text=render)


def _prefer_held(stop: Stop, document: dict[str, Any]) -> Stop:
    """Return *stop*; for the usual advice what mends a branch that cannot be asked, if one is."""
    held = document.get("heldBy", []) if stop.advice.is_usual else []
    hint = next((each.get("hint") for each in held if each["status"] == "ready"), None)
    return stop if hint is None else stop._replace(advice=Advice(hint))


def _paint(text: str, status: str, screen: Screen) -> str:
    if screen.width is None and not screen.has_colour:
        return text
    mark = screen.mark(status)
    before, title, after = visible_block(text).partition(_STATUS)
    told, newline, rest = after.partition("\n")
    shown = screen.paint(f"{mark.text} {told}", mark.style)
    return Painted(f"{before}{title}{shown}{newline}{rest}")


def _text(
    document: dict[str, Any],
    screen: Screen,
    advice: str = "",
    shorten: Callable[[str], str] = str,
    failed: Mapping[str, int] = MappingProxyType({}),
) -> str:
    """Format the state of a thread for people; `uwf thread read` prints its texts."""
    steps = document["steps"] if "steps" in document else [document["step"]]
    facts = {
        "thread": document["thread"],
        "workflow": f"{document['workflowName']} {document['workflow']}",
        "status": describe_status(document, screen.tell_moment),
        "because": document.get("reason"),
        "by": document.get("by"),
        "told": document.get("hint"),
        "head": document["head"],
        "parent": _parent(document),
        "prompt": document["prompt"],
        "steps": _count_steps(document),
        "newest": document["said"],
        "visits": _tell_visits(document, failed) or None,
        "spent": _describe_spent(document),
        "agents": _describe_agents(document["agents"]),
        "started": screen.tell_moment(document["startTime"]),
        "updated": screen.tell_moment(document["lastUpdateTime"]),
        "workdir": document["workdir"],
        "limits": describe_limits(document),
        "turn": document["currentNode"]
        and document.get("try", {}).get("turn", document["currentNode"]),
    }
    lines = [
        f"{name:10}{_short(value, _LONGEST_STATUS if name == 'status' else _LONGEST_VALUE)}"
        for name, value in facts.items()
        if value is not None
    ]
    if "diverged" in document:
        lines.append(f"{'diverged':10}{_diverged(document)}")
    lines += _family(document, shorten)
    if "try" in document:
        lines.append(f"{'try':10}{describe_try(document['try'])}")
    for branch in document.get("givenUp", ()):
        told = f"{branch['number']} {branch['label']}: {_short(branch['error'])}"
        lines.append(f"{'given up':10}{told}")
    if document["error"]:
        lines.append(f"{'error':10}{_tell_error(document)}")
    lines = _fit(lines, screen, indent=10)
    taken = _steps(steps, first=document["depth"] - len(steps) + 1)
    lines += _fit([*taken, *_branches_steps(document)], screen, indent=3)
    if "question" in document:
        lines += ["", *_question(document["question"])]
    if advice:
        lines += ["", f"next: {with_typed_store(advice)}"]
    return "\n".join(lines)


def _fit(lines: Iterable[str], screen: Screen, *, indent: int) -> list[str]:
    """Return *lines*; those too long for the screen in lines below their first *indent*.

    They are broken between words. A path that fills a line stays whole, so that it can be copied.
    """
    width = screen.width
    return [line if width is None else _break(line, width, indent) for line in lines]


def _break(line: str, width: int, indent: int) -> str:
    from uwf_git.engine.picture.labels import columns, wrap  # noqa: PLC0415 (only at a terminal)

    words = line[indent:].split()
    room = width - indent
    if columns(line) <= width or max(map(columns, words), default=0) > room:
        return line
    return line[:indent] + ("\n" + " " * indent).join(wrap(line[indent:], room))


def _steps(
    steps: list[dict[str, Any] | None], *, first: int = 1, branch: str = "", around: str = ""
) -> Iterator[str]:
    """Yield the lines of *steps*; before a join the lines of the joined branches.

    *branch* names the branch that took them, *around* has its number with a dot.
    """
    for number, step in enumerate(steps, first):
        if step is not None:
            yield from _branches_steps(step, around)
            yield ""
            files = describe_files(step.get("files"))
            failed = step.get("failedAttempts")
            after = f", after {count_attempts(failed)}" if failed else ""
            told = f"{after}{files and ', '}{files}"
            yield f"{branch}{number}. {step['role']} {step['hash']}{told}"
            yield from _meta(step["meta"])
            yield from _behind(step)


def _branches_steps(document: dict[str, Any], around: str = "") -> Iterator[str]:
    """Yield the steps of branches, which are there with --full alone."""
    for number, row in _walk(document, around):
        branch = f"branch {number} {row['label']}, "
        yield from _steps(row.get("steps", []), branch=branch, around=f"{number}.")


def _walk(document: dict[str, Any], around: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the branches in *document*, each with its number, and theirs after it."""
    for row in document.get("branches", []):
        yield (number := f"{around}{row['number']}"), row
        yield from _walk(row, f"{number}.")


def _tell_error(document: dict[str, Any]) -> str:
    error = document["error"]
    if error["kind"] == "rejected":
        return str(error["message"])
    return f"{document['attempts']}. try: {error['message']}"


def describe_try(view: dict[str, Any]) -> str:
    """Return which try of how many a thread is at, and whose turn it is."""
    if view["number"] > view.get("of", view["number"]):
        return f"all {view['of']} at {view['node']} are used up"
    of = f" of {view['of']}" if "of" in view else ""
    return f"{view['number']}{of} at {view['node']}; it is the turn of {view['turn']}"


def _count_steps(document: dict[str, Any]) -> str:
    """Count a thread's own steps, and with them the steps of its branches."""
    own, all_steps = document["depth"], document.get("allSteps", 0)
    return f"{own}, {all_steps} with its branches" if all_steps > own else str(own)


def _parent(document: dict[str, Any]) -> str | None:
    """Return the thread whose agent started this thread, or that split into this branch."""
    parent = document["parentThread"]
    if parent is None:
        return None
    how = "this thread is a branch of it" if "branchOf" in document else ""
    return f"{parent} ({how or 'an agent of it started this thread'})"


def _family(document: dict[str, Any], shorten: Callable[[str], str]) -> list[str]:
    lines = []
    for number, row in _walk(document):
        said = f": {_short(row['said'])}" if row.get("said") else ""
        told = f"{number} {row['label']} {shorten(row['thread'])} {row['status']}{said}"
        lines.append(f"{'branch':10}{told}")
    lines += describe_work(document)
    for held in document.get("heldBy", []):
        is_told = held["status"] == "ready" or "branches" not in document
        if held["thread"] == document["thread"] and is_told:
            # The advice tells it.
            continue
        what = _HELD.get(held["status"], held["status"])
        is_own = held["status"] == "limit" or held["thread"] == document["thread"]
        who = "" if is_own else f"{shorten(held['thread'])}, "
        told = f": {_short(held['error'])}" if "error" in held else ""
        lines.append(f"{'held by':10}{who}{what}{told}")
        if "hint" in held:
            lines.append(f"{'':10}{with_typed_store(held['hint'])}")
    return lines


def describe_work(document: dict[str, Any]) -> list[str]:
    """Return a line for each worktree of a branch, and for each ref that has what it left."""
    lines: list[str] = []
    for work in document.get("work", []):
        if work["worktree"] is not None:
            lines.append(f"{'worktree':10}{work['worktree']}")
        kept = [] if work["commit"] is None else [work, *work.get("inner", [])]
        of = f"{work['number']} {work['label']}, " if "label" in work else ""
        lines += [f"{'work':10}{of}{each['ref']} of {each['repository']}" for each in kept]
    return lines


def _tell_visits(document: dict[str, Any], failed: Mapping[str, int]) -> str:
    """Return how often each role ran, and how many of its tries failed."""
    visits = dict.fromkeys(failed, 0) | document["visits"]
    return " · ".join(
        f"{role} {number}" + (f" ({tell_failed(failed[role])})" if failed.get(role) else "")
        for role, number in visits.items()
        if number or failed.get(role)
    )


def tell_failed(number: int) -> str:
    """Return a number of failed tries in words."""
    return f"{number} failed {'try' if number == 1 else 'tries'}"


def _describe_spent(document: dict[str, Any]) -> str | None:
    """Return the time at work, tokens and cost."""
    if not document["executionTime"]:
        return None
    at_work = f"{render_duration(document['executionTime'])} at work"
    return " · ".join([at_work, *describe_usage(document["usage"])])


def _describe_agents(agents: dict[str, str]) -> str | None:
    if len(set(agents.values())) == 1:
        return next(iter(agents.values()))
    return " · ".join(f"{role} {_short(command)}" for role, command in agents.items()) or None


def describe_status(
    document: dict[str, Any], tell_moment: Callable[[int], str] = render_time
) -> str:
    """Return the status, its cause, and who is at work."""
    waiting = document.get("waiting")
    told = str(document["status"])
    if "branchStatus" in document:
        from uwf_git.commands.inspect.list import count_rows  # noqa: PLC0415 (few threads split)

        counts = count_by_status(count_rows(document["branches"]))
        told = f"{document['branchStatus']} (split: {counts})"
    elif document.get("pausedFrom"):
        told += f", and was {document['pausedFrom']}"
    elif told == "waiting" and waiting is not None:
        if "until" in waiting:
            told += f" until {tell_moment(waiting['until'])}: {waiting['role']} hit a limit"
        else:
            since = tell_moment(waiting["since"])
            told += f" since {since} for a person, who plays {waiting['role']}"
    if document["failures"]:
        told += f", after {tell_failed(document['failures'])}"
    running = document.get("running")
    return told if running is None else f"{told}; at work: {_worker(running, tell_moment)}"


def _diverged(document: dict[str, Any]) -> str:
    """Return the remotes that have another history, and what to type."""
    there = [
        f"{each['remote']} had it at {each['there']}: `uwf fetch {each['remote']}` says what to do"
        for each in document["diverged"]
    ]
    return with_typed_store("; ".join(there))


def _worker(running: dict[str, Any], tell_moment: Callable[[int], str]) -> str:
    """Return the role and process at work, as far as they are known."""
    told = running["role"] or "the driver"
    told += f" ({running['agent']})" if running["agent"] else ""
    told += f", process {running['pid']}" if running["pid"] is not None else ""
    told += f", since {tell_moment(running['since'])}" if running["since"] else ""
    last = running.get("lastOutput")
    return told if last is None else f"{told}; last output {tell_moment(last)}"


def describe_limits(document: dict[str, Any]) -> str | None:
    """List the limits and how much of each is used, with the branches that the thread has now."""
    used = document.get("limitsUsed", {})
    told = [
        f"{name} {f'{tell_limit(name, used[name])} of ' if name in used else ''}"
        f"{tell_limit(name, limit)}"
        for name, limit in document["limits"].items()
    ]
    return ", ".join(told) or None


def _question(question: dict[str, Any]) -> list[str]:
    lines = [f"question for {question['role']}:", ""]
    given = context.tell_given(question)
    for part in (question.get("description", ""), question.get("systemPrompt", ""), given):
        text = part.strip()
        if len(text) > _LONGEST_QUESTION:
            text = f"{text[:_LONGEST_QUESTION]}\n[… --format json shows all of it]"
        lines += [*(f"   {line}".rstrip() for line in text.splitlines()), ""] if text else []
    if question["lastStep"] is not None:
        newest = question["lastStep"]
        lines += [f"   {newest['role']} said: {_short(newest['said'])}", ""]
    lines += [f"   {line}" for line in question.get("fields", [])]
    return lines


def _meta(meta: Any) -> list[str]:
    fields = list(meta.items()) if isinstance(meta, dict) else [("meta", meta)]
    lines = [line for name, value in fields[:_MOST_FIELDS] for line in _field(name, value)]
    more = len(fields) - _MOST_FIELDS
    return [*lines, f"   … and {more} more; --format json shows all"] if more > 0 else lines


def _field(name: str, value: Any) -> Iterator[str]:
    """Yield a field of a meta; the objects of a list are a line each."""
    if not isinstance(value, list) or not all(isinstance(each, dict) and each for each in value):
        yield f"   {name}: {_short(value)}"
        return
    yield f"   {name}:" if value else f"   {name}: none"
    for each in value[:_MOST_OBJECTS]:
        told = ", ".join(f"{key}: {_short(inner)}" for key, inner in each.items())
        yield f"     - {_short(told)}"
    if len(value) > _MOST_OBJECTS:
        yield f"     - … and {len(value) - _MOST_OBJECTS} more"


def _behind(step: dict[str, Any]) -> list[str]:
    """List the other nodes of the step; `json-cas get` prints them."""
    names = {"execContext": "env"}
    fields = ("prompt", "trace", "log", "execContext", "rung")
    told = [(names.get(field, field), step.get(field)) for field in fields]
    return [f"   {name:8}{value}" for name, value in told if value is not None]


def _short(value: Any, longest: int = _LONGEST_VALUE) -> str:
    written = value if isinstance(value, str) else render_json(value)
    return cut(" ".join(written.split()), longest)
