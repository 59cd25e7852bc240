"""`uwf thread start`, `fork` and `rm`."""

from typing import TYPE_CHECKING, Any

import click

from uwf_git.cli.app.follow_up import note_next
from uwf_git.cli.app.parameters import (
    PROMPT_OPTIONS,
    agents_option,
    limit_options,
    no_prompt,
    not_json,
    read_json_argument,
    read_prompt,
    reason_option,
    with_options,
)
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import caller_of
from uwf_git.cli.output.screen import confirm, emit, note, without_none
from uwf_git.cli.session import Session
from uwf_git.cli.workflow import note_local
from uwf_git.commands.control.files import fork_with_files
from uwf_git.commands.remove import Removal, plan_removals, remove_thread
from uwf_git.commands.start import ForkRequest, Started, StartRequest, fork_thread, start_thread
from uwf_git.commands.turn.flow import read_spending
from uwf_git.commands.worktree.worktrees import ForgottenWork
from uwf_git.errors import BadUsage, Refused
from uwf_git.model.event_folds import count_steps
from uwf_git.model.text import quote_path
from uwf_git.store.remotes.remotes import list_remotes
from uwf_git.store.store import Store
from uwf_git.store.threads.history import read_snapshot

if TYPE_CHECKING:
    from uwf_git.commands.control.change_rules import Amended

# What `uwf thread start` and `uwf run` share: what a thread begins with.


def _read_request(given: dict[str, Any]) -> None:
    given["request"] = StartRequest(
        given.pop("workflow"),
        read_prompt(given.pop("prompt_text"), given.pop("prompt_file")),
        given.pop("agents"),
        workdir=given.pop("workdir"),
        limits=given.pop("limits"),
        state=_read_state(given.pop("state")),
    )


start_options = with_options(
    _read_request,
    click.argument("workflow"),
    *PROMPT_OPTIONS,
    click.option(
        "--state",
        metavar="JSON",
        help="Members of the state that the thread begins with; `-` is standard input.",
    ),
    agents_option("The agent of a role, or of every role; may be repeated."),
    click.option(
        "--workdir", metavar="PATH", help="Where the agents run.  [default: the current directory]"
    ),
    limit_options,
)
"""Add the argument ``request: StartRequest`` to a verb, and the options that make it."""


def begin_thread(session: Session, store: Store, request: StartRequest) -> Started:
    """Create the thread; $UWF_AGENT is its default agent."""
    request = request._replace(default_agent=session.agent)
    try:
        return start_thread(store, caller_of(session), request, thread=session.new_thread_id())
    except Refused as error:
        if error.code != "empty-prompt":
            raise
        raise no_prompt("there is no prompt") from None


def _read_state(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    state = read_json_argument(text, "the state")
    if not isinstance(state, dict):
        raise not_json("the state", "it is no object")
    return state


@verb(
    "uwf thread start solve-issue -p 'Fix the login bug of issue 42'",
    "uwf thread start solve-issue --prompt-file issue.md --agent developer=uwf-cursor",
    """uwf thread start develop -p x --agent 'developer={"command": "dev", "protocol": "flags"}'""",
    "uwf thread start solve-issue -p x --agent developer=@developer.yaml",
    exits={1: "there is no such workflow or role"},
)
@start_options
def start_command(session: Session, request: StartRequest) -> None:
    """Create a thread without running a step.

    WORKFLOW is the name of a file in .workflows (of the current directory, or above it in the git
    repository), else of a registered workflow, else of one that uwf brings; or the hash of any
    version of a workflow.

    The agents of the roles are fixed now: --agent, else the workflow's agentOverrides, else its
    defaultAgent, else $UWF_AGENT, else the setting uwf.agent. A role that has none of these takes
    $UWF_AGENT or uwf.agent when its turn comes. A CMD for every role leaves those that
    agentOverrides binds to human, uwf-human, uwf-shell or uwf-check; ROLE=CMD replaces them. Limits
    that are not given are those of the workflow's config; `none` is no limit. A workflow of
    containers needs no prompt: it has its description.

    An agent is called as `CMD THREAD`, or with the protocol `flags` as `CMD -t THREAD -r ROLE`, and
    then prints the meta alone. Its settings are given in place of CMD, as JSON or in a YAML file:
    command, protocol, timeout (seconds), retries, backoff (seconds), env. Settings without a
    command change the agent that the role has anyway.
    """
    store = session.open_store(create=True)
    started = begin_thread(session, store, request)
    note_found(started)
    if started.unbound:
        note(
            f"note: no agent is bound to {', '.join(started.unbound)}; `uwf config set agent CMD` "
            "sets a default"
        )
    note_missing(started)
    emit(session, {"workflow": started.workflow, "thread": started.thread})
    note_next(session, store, started.thread, is_called=True)


def note_found(started: Started) -> None:
    """Note that the workflow is a file of the project."""
    found = started.found
    note_local(found.workflow.name, found.file, found.shadows)
    note_left(started.left)


def note_left(roles: tuple[str, ...]) -> None:
    """Note which roles a command for every role does not play."""
    if roles:
        note(
            f"note: {', '.join(roles)} is left to its person or check; `--agent {roles[0]}=CMD` "
            "names another agent"
        )


def note_missing(given: "Started | Amended") -> None:
    """Note which agents are not found here: a step would fail, unless it runs elsewhere."""
    for roles, error in given.missing:
        note(
            f"note: {error.message}, and is to play {', '.join(roles)}; unless the thread runs "
            f"elsewhere, `uwf thread amend {given.thread} --agent {roles[0]}=CMD` names another"
        )


# `uwf thread fork`.


@verb(
    "uwf thread fork 01J7K9M2 --at 3 -m 'another way after the review'",
    "uwf thread fork 01J7K9M2 --at 4f2a91c",
    "uwf thread fork 01J7K9M2 --from-role reviewer",
    "uwf thread fork 01J7K9M2 --at 3 --files --into ../second-try",
    exits={1: "there is no such thread or step"},
)
@click.argument("thread")
@click.option(
    "--at",
    metavar="STEP",
    help="Where: a step's number or hash, or a commit.  [default: where the thread is now]",
)
@click.option(
    "--from-role",
    metavar="ROLE",
    help="Before the newest step of this role, so that it is next again.",
)
@reason_option
@click.option(
    "--workdir",
    metavar="PATH",
    help="Where its agents run.  [default: as the thread's, else the current directory]",
)
@click.option(
    "--files", is_flag=True, help="Give the fork its own work tree, with the files of that step."
)
@click.option(
    "--into", metavar="PATH", help="The work tree's path.  [default: below ~/.local/state/uwf]"
)
def fork_command(session: Session, thread: str, *, message: str, **asked: Any) -> None:
    """Fork a thread: start a new one at a step of another.

    The new thread shares the history up to there, and has the state and the place of then; nothing
    is copied, and the other thread, even an archived one, stays as it is. At a step at which the
    thread has split it splits anew. Use it also where two machines continued one thread at the same
    time: the fork continues your side as a thread of its own, and the thread continues as at the
    remote.
    """
    if asked["at"] is not None and asked["from_role"] is not None:
        raise BadUsage(
            "--at and --from-role both say where the fork begins",
            code="two-places",
            hint="give one of the two",
        )
    into = asked["into"]
    if (into is not None) > asked["files"] or (asked["files"] and asked["workdir"] is not None):
        raise BadUsage(
            "--files makes the work directory, at the path of --into",
            code="two-workdirs",
            hint="give --files and --into, or --workdir alone",
        )
    request = ForkRequest(thread, asked["at"], asked["from_role"], message, asked["workdir"])
    store, caller, new = session.open_store(), caller_of(session), session.new_thread_id()
    path = {}
    if asked["files"]:
        forked, path["path"] = fork_with_files(store, caller, request, thread=new, into=into)
    else:
        forked = fork_thread(store, caller, request, thread=new)
    document = {
        "workflow": forked.workflow,
        "thread": forked.thread,
        "head": forked.head,
        "status": "ready",
        "depth": forked.depth,
        "forkedFrom": forked.forked_from,
        "commit": forked.at,
    }
    emit(session, document | path)
    if forked.follows is not None:
        note(f"thread {forked.forked_from} goes on as it is at {forked.follows}")
    point = read_snapshot(store, forked.at)
    spending = read_spending(store, point, point.get_present())
    if spending.thread != forked.forked_from and spending.present.limits:
        more = f"`uwf thread amend {forked.thread} --max-…` gives it its own"
        note(f"note: the limits of thread {spending.thread} do not hold for the fork: {more}")
    note_next(session, store, forked.thread)


# `uwf thread rm`.


@verb(
    "uwf thread rm 01J7K9M2",
    "uwf thread rm 01J7K9M2 01J7KB4Q --yes",
    exits={1: "a thread is active or unknown, or the user did not confirm", 4: "it is being used"},
)
@click.argument("threads", nargs=-1, required=True, metavar="THREAD...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def rm_command(session: Session, threads: tuple[str, ...], yes: bool) -> None:  # noqa: FBT001 (click's way)
    """Remove archived threads from this store, and their branches.

    At a terminal it asks first; without one it needs --yes. Removed are the thread's refs here, its
    remote-tracking refs, and its files on this machine; also the recorded files, refs/uwf/work/ID
    and refs/uwf/inner/ID/ in the repositories where it began and worked last (`git update-ref` with
    the refs and commits in the result brings them back). The history that forks share stays. So do
    the commits, until `uwf gc` prunes them (until then the commit in the result restores the
    thread: `git update-ref refs/archive/ID COMMIT`), and the thread at remotes: the next fetch
    brings it back unless it is removed there as well, and so does a push from any other clone.

    To erase at once, run `git gc --prune=now` in the store and in the project: `uwf gc` waits two
    weeks, or what gc.pruneExpire says, but at least a day.
    """
    store = session.open_store()
    removals = plan_removals(store, threads)
    if not yes:
        _ask(session, removals)
    rows: list[dict[str, Any]] = []
    try:
        for removal in removals:
            row = _remove(session, store, removal)
            rows.append(row)
    finally:
        # Print what was removed, even if another removal failed.
        if rows:
            # Whole: the refs and commits bring back what was removed.
            emit(session, rows, wide=True)


def _ask(session: Session, removals: list[Removal]) -> None:
    if not session.can_ask:
        raise BadUsage(
            f"there is no terminal to confirm the removal of {_count(len(removals))}",
            code="nobody-to-confirm",
            hint="say so: --yes",
            threads=[removal.thread for removal in removals],
        )
    planned = {removal.thread for removal in removals}
    for removal in removals:
        if removal.parent not in planned:
            steps = "" if removal.depth is None else f", {count_steps(removal.depth)}"
            note(f"{removal.thread}  {removal.workflow_name or '-'}, {removal.status}{steps}")
    branches = [removal for removal in removals if removal.parent in planned]
    if branches:
        note(f"and {_count_branches(len(branches))}")
    apart = sum(removal.works_apart for removal in removals)
    if apart:
        note(f"and what {_count_branches(apart)} left at refs/uwf/work/ in your repository")
    if not confirm(f"Remove {_count(len(removals))} for good?"):
        raise Refused("nothing was removed", code="not-confirmed")


def _remove(session: Session, store: Store, removal: Removal) -> dict[str, Any]:
    removed = remove_thread(store, caller_of(session), removal)
    there = [each.name for each in list_remotes(store.config) if each.name in removed.remotes]
    if there:
        have = "has" if len(there) == 1 else "have"
        note(
            f"note: {', '.join(there)} still {have} {removal.thread}; the next fetch brings it back"
        )
    if removed.place is not None:
        path = quote_path(removed.place)
        note(
            f"note: the work tree {removed.place} stays, as somebody works there, or not all in it "
            f"is known to be recorded; `git -C {path} worktree remove --force {path}` removes it"
        )
    work = removed.work
    for each in () if work is None else (work, *work.others):
        if each.commit is None:
            note(
                f"warning: no {each.ref} was found in {each.repository}: recorded files may stay "
                f"wherever that is now; `git update-ref -d {each.ref}` in it removes them"
            )
    document = {
        "thread": removal.thread,
        "workflowName": removal.workflow_name,
        "status": removal.status,
        "depth": removal.depth,
        "commit": removal.commit,
        "remotes": removed.remotes,
        "parentThread": removal.parent,
        "work": None if work is None else _view_work(work),
    }
    return without_none(document, "parentThread", "work")


def _view_work(work: ForgottenWork) -> dict[str, Any]:
    document = {**work._asdict(), "inner": [each._asdict() for each in work.inner] or None}
    document["others"] = [_view_work(each) for each in work.others] or None
    return without_none(document, "commit", "inner", "others")


def _count(threads: int) -> str:
    return "this thread" if threads == 1 else f"these {threads} threads"


def _count_branches(branches: int) -> str:
    return "1 branch" if branches == 1 else f"{branches} branches"
