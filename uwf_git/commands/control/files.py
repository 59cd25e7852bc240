"""The files of a thread's steps: what one changed, a work tree with the files of then, a restore.

A step's commit names them by two commits of the chain in the project (`Uwf-Files`). Before a file
is replaced, what is there is in the chain, so a restore is undone by another. git's own two-way
merge (`git read-tree -m -u`) refuses as a whole where a file in its way is in no commit.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import count, pairwise
from typing import Any, NamedTuple

from uwf_git.commands.agent_run.runs import check_nothing_runs
from uwf_git.commands.caller import Caller
from uwf_git.commands.control.change_rules import poke_thread
from uwf_git.commands.split import name_work
from uwf_git.commands.start import Forked, ForkRequest, find_fork_point, find_point, fork_thread
from uwf_git.commands.step.ending import warned
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.commands.turn.turn import ThreadResult
from uwf_git.commands.worktree.chain import (
    UNKNOWN,
    Chain,
    find_chain,
    find_settings,
    judge_by_environ,
    read_heads,
)
from uwf_git.commands.worktree.record import place_of
from uwf_git.commands.worktree.repository import Git, add_worktree, commit_tree, find_commit, git_of
from uwf_git.errors import Conflict, Refused, UwfError, name_some
from uwf_git.model.event_rules import CONTROLS, RULES, STEPS
from uwf_git.model.names import ThreadId, is_oid, is_thread_id
from uwf_git.model.text import quote_path, visible_line
from uwf_git.store.durable import list_names
from uwf_git.store.git.program import ProgramFailed, find_common_dir
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, get_head
from uwf_git.store.threads.history import Snapshot, find_newest_step, read_snapshot, walk_history
from uwf_git.store.threads.local_files import (
    files_heads,
    find_holder,
    find_workdir,
    lock_thread,
    workdirs_folder,
)
from uwf_git.store.threads.naming import resolve_thread

_SHOWN, _MOST = 5, 1_000


class FilesAt(NamedTuple):
    """The files of a thread before and after a step, or from its first step to its newest."""

    thread: ThreadId
    step: int | None
    """None: all steps."""

    before: str
    after: str
    chain: Chain
    unlike: tuple[str, ...] = ()
    """What a restore could not make as it was."""


def find_files(
    store: Store,
    environ: Mapping[str, str],
    text: str,
    step: str | None = None,
    *,
    cwd: str | None = None,
) -> FilesAt:
    """Return what is recorded of the files of the thread *text* at *step*, or of all its steps.

    Of a project that was renamed they are found in the repository around *cwd*.

    *step* is a step's number or hash, a commit of the thread, or a commit of its chain of files. A
    step that changed no file has the same commit before and after it.
    """
    head = get_head(store, resolve_thread(store, text))
    commits = list(walk_history(store, head.commit, through_forks=True))
    chain = find_chain(store, head.thread, environ, is_reading=True, cwd=cwd)
    if chain is None:
        raise _no_project(store, head, commits)
    chain.read_ranges(commits)
    if step is not None and is_oid(step) and chain.has(step):
        return FilesAt(head.thread, None, step, step, chain)
    return _find_range(store, head, step, chain, commits)


def _no_project(store: Store, head: Head, commits: list[Snapshot]) -> Refused:
    workdir, ref = find_workdir(store, head.thread), name_work(head.thread)
    if head.archived and not any(each.record.files for each in commits):
        # Its work directory is forgotten then.
        problem = "none were recorded"
        hint = "files are recorded where the work directory is in a git repository"
    elif workdir is None or not os.path.isdir(workdir):
        known = "on this machine is not known" if workdir is None else f"{workdir} is gone"
        problem = f"its work directory {known}"
        hint = f"run this in the project, wherever that is now, if it has {ref} or {ref}-shared"
    else:
        problem = f"its work directory {workdir} is in no git repository"
        hint = f"run `git init` in {workdir}: what is done from then on is recorded"
    return _no_files(head.thread, problem, hint)


def _find_range(
    store: Store, head: Head, step: str | None, chain: Chain, commits: list[Snapshot]
) -> FilesAt:
    point = None if step is None else find_fork_point(store, head, step)
    place = next((n for n, each in enumerate(commits) if point and each.commit == point.commit), -1)
    if point is not None and place < 0:
        # Work that was kept beside the thread.
        commits, place = list(walk_history(store, point.commit.oid, through_forks=True)), 0
        chain.read_ranges(commits)
    if point is None and not chain.ranges:
        raise _no_files(
            head.thread,
            "no step of it is recorded to have changed a file",
            f"`uwf thread show {head.thread} --full` has its steps",
        )
    known = None
    if point is None:
        ends = [each.split("..") for each in chain.ranges.values()]
        before, after = ends[-1][0], ends[0][1]
    elif point.commit.oid in chain.ranges:
        before, after = chain.ranges[point.commit.oid].split("..")
    else:
        known = before = after = _find_unchanged(store, chain, commits, place)
    for each in _walk_attempts(commits[place:]):
        begun, left = each.split("..")
        if left != before and chain.git.run("diff-tree", "--quiet", left, before).status:
            # What a person changed between two attempts is no part of the step.
            break
        before = begun
    # A pushed step may name any commit of the project.
    if any(each != known and not chain.reaches(each) for each in {before, after}):
        ref = name_work(head.thread if point is None else point.record.thread)
        raise _no_files(
            head.thread,
            f"its files are not in {ref} of the project {chain.worktree}",
            f"fetch them from where they are: `git -C {quote_path(chain.worktree)} fetch REMOTE "
            f"{ref}:{ref}`",
        )
    return FilesAt(head.thread, None if point is None else point.record.depth, before, after, chain)


def _find_unchanged(store: Store, chain: Chain, commits: list[Snapshot], place: int) -> str:
    """Return the files as they were at *place*, where no turn ended that changed one."""
    noted = {
        (name, after): head
        for name in {each.record.thread for each in commits}
        for after, head in read_heads(files_heads(store, name))
    }
    # What a turn made comes after the HEAD that it began with; that it was not recorded, last.
    known = noted | {(each.thread, each.after): each.commit for each in reversed(chain.read_log())}
    known |= {turn: head for turn, head in noted.items() if head == UNKNOWN}
    # A pause leaves a turn under way, which made its files later.
    place = next(n for n in count(place) if commits[n].record.event not in CONTROLS)
    turns = [(at.record.thread, before.commit.oid) for at, before in pairwise(commits[place:])]
    commit = next((known[turn] for turn in turns if turn in known), None)
    ends = {each.commit.oid for each in commits if RULES[each.record.event].may_change_files}
    ends |= chain.ranges.keys()
    begun = max((n for n, each in enumerate(commits) if each.commit.oid in ends), default=0)
    if commit is None and begun < place:
        # As the first turn found them.
        turn = commits[begun].record.thread, commits[place].commit.oid
        before = chain.ranges.get(commits[begun].commit.oid, "").split("..")[0]
        commit = before if chain.reaches(before) else known.get(turn)
    if commit == UNKNOWN:
        record = commits[place].record
        raise _no_files(
            record.thread,
            f"those of step {record.depth} were not recorded",
            f"`uwf thread files {record.thread}` has what was; without --files, a poke or a fork "
            "leaves the files as they are",
        )
    if commit is None or find_commit(chain.git, commit) is None:
        thread, first = commits[0].record.thread, next(reversed(chain.ranges), "")[:12]
        hint = f"`uwf thread restore {thread} {first} --before` makes them as they were before "
        raise _no_files(
            thread,
            "nothing had changed by then, and how they were is not known here",
            f"{hint}the first change"
            if first
            else f"`uwf thread show {thread} --full` has its steps",
        )
    return commit


def _walk_attempts(commits: list[Snapshot]) -> Iterator[str]:
    """Yield what the failed attempts of the first of *commits*, newest first, did to files."""
    first = commits[0].record
    for each in commits[1:] if first.event in STEPS else ():
        record = each.record
        if record.thread != first.thread or record.event in {*STEPS, "poke"}:
            return
        # A place that was given up, or changed rules, had another turn.
        if record.files and (record.role, record.at) == (first.role, first.at):
            yield record.files


def _no_files(thread: ThreadId, problem: str, hint: str) -> Refused:
    return Refused(
        f"thread {thread} has no files to show: {problem}",
        code="no-files",
        hint=hint,
        thread=thread,
    )


def view_files(found: FilesAt) -> dict[str, Any]:
    told = found.chain.git.ask(
        "diff", *_PLAIN, "--no-renames", "--numstat", "-z", found.before, found.after
    )
    rows = (row.split("\t", 2) for row in told.split("\0") if row)
    _, tip = found.chain.read_tips(found.after)
    return {
        "thread": found.thread,
        "step": found.step,
        "before": found.before,
        "after": found.after,
        "repository": found.chain.worktree,
        "changed": [
            {"path": path, "added": _count(added), "removed": _count(removed)}
            for added, removed, path in rows
        ],
        "leftOut": [*dict.fromkeys([*(() if tip is None else tip.left_out), *found.unlike])],
    }


# Nothing that a user's settings would start or add.
_PLAIN = ("--no-ext-diff", "--no-textconv", "--submodule=short", "--no-color")


def _count(text: str) -> int | None:
    """Return a number of lines; None for a binary file."""
    return int(text) if text.isdecimal() else None


def read_patch(found: FilesAt, *, is_shown: bool) -> bytes:
    """Return what `git diff` prints; `git apply` can apply it unless it *is_shown* to a person."""
    words = () if is_shown else ("--binary", "--full-index")
    patch = os.fsencode(found.chain.git.ask("diff", *_PLAIN, *words, found.before, found.after))
    return patch and patch + b"\n"


def open_files(found: FilesAt, commit: str, path: str) -> str:
    """Make a work tree at *path* of the project: HEAD of then, with the files of *commit*."""
    if os.path.lexists(path) and (not os.path.isdir(path) or os.listdir(path)):
        raise Refused(
            f"{path} is there already",
            code="path-in-use",
            hint="name a path at which nothing is: --into PATH",
            path=path,
        )
    git = found.chain.git
    _, tip = found.chain.read_tips(commit)
    head = (tip.head if tip is not None and tip.is_made else None) or commit
    repository = find_common_dir(git.place.git_dir)
    names = (f"uwf-{found.thread}-{number}" for number in count())
    name = next(n for n in names if not os.path.lexists(os.path.join(repository, "worktrees", n)))
    own = add_worktree(repository, path, name=name, head=head)
    there = git_of(git.environ, own, worktree=path, kept=git.place.kept)
    try:
        there.run_guarded("read-tree", "--reset", "-u", "--no-recurse-submodules", commit)
        there.ask("read-tree", head)
    except BaseException:
        shutil.rmtree(own, ignore_errors=True)
        shutil.rmtree(path, ignore_errors=True)
        raise
    return path


def restore_files(
    store: Store, caller: Caller, text: str, step: str, *, is_before: bool = False
) -> FilesAt:
    """Make the files of the project as they were after *step*, or before it.

    What is there now is recorded first. The user's index, HEAD and stash stay as they are.
    Restoring the ``before`` of the result undoes this.
    """
    thread = resolve_thread(store, text)
    with lock_thread(store, thread, since_ms=caller.now_ms()):
        tip = read_snapshot(store, get_head(store, thread).commit)
        return _restore(store, caller, tip, step, is_before=is_before)


def _restore(store: Store, caller: Caller, tip: Snapshot, step: str, *, is_before: bool) -> FilesAt:
    thread = tip.record.thread
    found = find_files(store, caller.environ, thread, step, cwd=caller.cwd)
    _check_place(store, tip, found.chain, found.chain.ref)
    told = f"files {'before' if is_before else 'after'} step {step}"
    target = found.before if is_before else found.after
    brought = _bring(store, caller, tip, found.chain, told, lambda _undo: target, source=target)
    return brought._replace(step=found.step)


def _check_place(store: Store, tip: Snapshot, chain: Chain, ref: str) -> None:
    """Check that the files that are to be changed, those of *chain*, are of the thread at *tip*."""
    thread, place = tip.record.thread, find_workdir(store, tip.record.thread)
    problem = hint = ""
    has_moved = not os.path.isdir(find_settings(store, thread).repository)
    is_elsewhere = place and not chain.surrounds(place)
    if is_elsewhere and (tip.get_trunk() is not None or not has_moved):
        problem = f"its work directory {place} is gone, or in no repository"
        hint = f"`uwf thread files {thread} STEP --into PATH` has them elsewhere"
    own = find_common_dir(chain.git.place.git_dir)
    if store.refs.find(ref) is not None and own != os.path.realpath(store.path):
        problem = f"its work directory is in {chain.worktree}, and this looks like a copy of that"
        hint = f"run this in {chain.worktree}"
    if problem:
        raise _no_files(thread, problem, hint)


def poke_with_files(
    store: Store, caller: Caller, text: str, *, hint: str = "", retake: Choice | None = None
) -> tuple[ThreadResult, FilesAt]:
    """Take the newest step back, and what it did to the files; refuse both or neither."""
    restored: list[FilesAt] = []

    def restore(tip: Snapshot) -> None:
        if not restored:  # The head may have moved, so that the poke is built anew.
            step = find_newest_step(tip).commit.oid
            restored.append(_restore(store, caller, tip, step, is_before=True))

    try:
        poked = poke_thread(store, caller, text, hint=hint, retake=retake, restore=restore)
    except (UwfError, OSError) as error:
        # The thread was steered just then, as by a pause, or the disk is full.
        for done in restored:
            try:
                restore_files(store, caller, done.thread, done.before)
            except (UwfError, OSError):
                problem = f"restored, but the step was not taken back: {error}"
                raise _restored_in_part(done.chain, done.before, problem) from error
        raise
    return poked, restored[0]


def take_files(store: Store, caller: Caller, text: str, other: str) -> FilesAt:
    """Merge the files of the thread *other*, a branch or a fork, into the project of *text*.

    git's own forecast, `git merge-tree`, is asked before a file is touched. What is there now is
    recorded first.
    """
    thread, winner = resolve_thread(store, text), resolve_thread(store, other)
    with lock_thread(store, thread, since_ms=caller.now_ms()):
        tip = read_snapshot(store, get_head(store, thread).commit)
        ref = name_work(winner)
        chain = find_chain(store, thread, caller.environ, cwd=caller.cwd, ref=ref)
        if chain is None or find_commit(chain.git, ref) is None:
            raise _no_files(
                winner,
                f"there is no {ref} in the project of thread {thread}",
                f"run this in the project that has {ref}",
            )
        _check_place(store, tip, chain, ref)
        taken, told = chain.git.ask("rev-parse", ref), f"files of thread {winner} at "

        def merge(undo: str) -> str:
            words = ("--write-tree", "--name-only", "--no-messages")
            side = _find_side(chain.git, undo, f"restored the {told}")
            ran = chain.git.run("merge-tree", *words, side, taken)
            tree, *names = os.fsdecode(ran.stdout).splitlines()[:_MOST] or [""]
            if ran.status == 1:
                place = quote_path(chain.worktree)
                raise Refused(
                    f"the files of threads {thread} and {winner} conflict: "
                    f"{name_some(names, most=_SHOWN)}; nothing was changed",
                    code="files-conflict",
                    hint="merge them yourself: commit what is in the project, then "
                    f"`git -C {place} merge --no-commit {ref}`",
                    thread=thread,
                    other=winner,
                    paths=names,
                )
            if ran.status:
                raise ProgramFailed("git", f"merge-tree failed: {ran.last_line}; it needs git 2.38")
            return tree

        return _bring(store, caller, tip, chain, told + taken, merge, source=taken)


def _find_side(git: Git, undo: str, title: str) -> str:
    """Return our side of a merge: *undo*, on top of what was taken last and not undone since.

    The title of the commit of an earlier take, *title* and what it took, tells that. It is undone
    if all files that it changed are as in an older commit.
    """
    # The boundary is what was there before the chain began.
    words = ("--first-parent", "--boundary", "--ignore-missing", "--format=%H %s", undo, "^HEAD")
    log = [line.split(" ", 1) for line in os.fsdecode(git.run("log", *words).stdout).splitlines()]
    compare = ("diff-tree", "-r", "--name-only", "--no-renames")
    for place, (commit, said) in enumerate(log):
        if said.startswith(title):
            changes = (f"{commit}^", commit)
            # git's own undo leaves new files, which it does not track.
            names = git.ask(*compare, "--diff-filter=a", *changes) or git.ask(*compare, *changes)
            differs = set(names.splitlines()).intersection
            older = (git.ask(*compare, each, undo).splitlines() for each, _ in log[place + 1 :])
            stands = not differs(git.ask(*compare, commit, undo).splitlines())
            if (names and stands) or all(map(differs, older)):
                return commit_tree(git, f"{undo}^{{tree}}", (said.removeprefix(title),), title)
    return undo


def _bring(
    store: Store,
    caller: Caller,
    tip: Snapshot,
    chain: Chain,
    told: str,
    choose: Callable[[str], str],
    *,
    source: str,
) -> FilesAt:
    """Record the files of now, and replace them by what *choose* returns for that commit.

    *source* is the commit that tells which files are not among them.
    """
    thread, after = tip.record.thread, tip.commit.oid
    check_nothing_runs(store, tip)
    # Check that no other thread is at work in the same work tree.
    for name in filter(is_thread_id, list_names(workdirs_folder(store))):
        other = ThreadId(name)
        is_inside = chain.surrounds(find_workdir(store, other) or "")
        if other != thread and is_inside and find_holder(store, other) is not None:
            raise Conflict(
                f"thread {other} is at work in {chain.worktree}",
                code="files-in-use",
                hint=f"wait for it with `uwf thread wait {other}`, or `uwf thread pause --now "
                f"{other}`",
                thread=other,
                path=chain.worktree,
            )
    has_key = judge_by_environ(caller.environ)
    # Without a chain this begins it: HEAD alone could not be named to undo the restore.
    record = partial(chain.record, after=after, has_key=has_key, since="", is_bounded=False)
    undo = record(f"before a restore of the {told}")
    target = choose(undo)
    in_way = list(_list_in_way(chain, undo, target))
    if in_way:
        raise _not_restored(chain, undo, f"in the way is {name_some(in_way, most=_SHOWN)}")
    words = ("-m", "-u", "--no-recurse-submodules", "--no-sparse-checkout")
    try:
        chain.git.run_guarded("read-tree", *words, undo, target)
    except ProgramFailed as error:
        now = None
        with warned(store, thread, after):
            now = record("after a restore that failed")
        if now == undo:
            raise _not_restored(chain, undo, error.message) from error
        problem = f"restored only in part: {error.message}"
        raise _restored_in_part(chain, undo, problem) from error
    with suppress(OSError):
        # git removes a folder that has become empty, and the agents run in this one.
        os.makedirs(os.path.join(chain.worktree, chain.inner), exist_ok=True)
    brought = target
    with warned(store, thread, after):
        brought = record(f"restored the {told}")
    unlike = chain.git.ask("diff-tree", "-r", "--name-only", "-z", target, brought).split("\0")
    left = [f"{visible_line(each)}: git left it as it is" for each in unlike if each]
    _, there = chain.read_tips(source)
    left += () if there is None else there.left_out
    return FilesAt(thread, None, undo, brought, chain, tuple(left))


def _list_in_way(chain: Chain, now: str, then: str) -> Iterator[str]:
    """Yield the ignored files that a restore would make git overwrite."""
    words = ("--no-renames", "--name-status", "-z")
    told = iter(chain.git.ask("diff-tree", "-r", *words, now, then).split("\0"))
    changes = list(zip(told, told, strict=False))
    gone = {path for how, path in changes if how == "D"}
    for how, path in changes:
        for each in (path[:end] for end, sign in enumerate(f"{path}/") if sign == "/"):
            whole = os.path.join(chain.worktree, each)
            is_folder = os.path.isdir(whole) and not os.path.islink(whole)
            # Where a file is another, only what was a repository inside is a folder.
            if how not in {"A", "T"} or (how == "T" and each == path and not is_folder):
                break
            if each != path and (is_folder or not os.path.lexists(whole)):
                continue
            found = (os.path.relpath(file, chain.worktree) for file in _list_files(whole))
            yield from (name for name in found if name not in gone)
            break


def _list_files(path: str) -> Iterator[str]:
    """Yield *path* if a file is there, or all files below it."""
    if not os.path.isdir(path) or os.path.islink(path):
        if os.path.lexists(path):
            yield path
        return
    for folder, folders, names in os.walk(path):
        links = [each for each in folders if os.path.islink(os.path.join(folder, each))]
        yield from (os.path.join(folder, each) for each in (*names, *links))


def _not_restored(chain: Chain, undo: str, problem: str) -> Conflict:
    return Conflict(
        f"the files of thread {chain.thread} were not restored, and nothing was changed: {problem}",
        code="not-restored",
        hint="move or remove what is in the way; what is left out of the record is listed by "
        f"`git -C {quote_path(chain.worktree)} show {undo}`",
        thread=chain.thread,
        path=chain.worktree,
    )


def _restored_in_part(chain: Chain, undo: str, problem: str) -> Conflict:
    return Conflict(
        f"the files of thread {chain.thread} were {problem}",
        code="restored-in-part",
        hint=f"mend that and try again; `uwf thread restore {chain.thread} {undo}` brings back "
        "what was there before",
        thread=chain.thread,
        path=chain.worktree,
        undo=undo,
    )


def fork_with_files(
    store: Store, caller: Caller, request: ForkRequest, *, thread: ThreadId, into: str | None
) -> tuple[Forked, str]:
    """Fork a thread, with the files of then in a work tree *into* or below the user's own files."""
    head = get_head(store, resolve_thread(store, request.thread))
    point = find_point(store, head, request)
    found = find_files(store, caller.environ, head.thread, point.commit.oid, cwd=caller.cwd)
    path = place_of(store, thread)
    if into is not None:
        path = os.path.normpath(os.path.join(caller.cwd, into))
    if path is None:
        raise Refused(
            "there is no home directory to keep the files of the fork in",
            code="no-place-for-files",
            hint="name a path: --into PATH",
        )
    # Before the work tree, which nothing would remove again.
    caller.check_signing(store)
    open_files(found, found.after, path)
    inside = os.path.normpath(os.path.join(path, found.chain.inner))
    os.makedirs(inside, exist_ok=True)
    # At the step whose files are there, though the thread may have moved on meanwhile.
    request = request._replace(at=point.commit.oid, from_role=None, workdir=inside)
    if found.chain.has(found.after):
        request = request._replace(files=found.after)
    return fork_thread(store, caller, request, thread=thread), path
