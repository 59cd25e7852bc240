"""Worktrees of branches: make one where its split began; keep its work at the end, remove it."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import NamedTuple

from uwf_git.commands.family import find_isolation
from uwf_git.commands.split import name_work
from uwf_git.commands.worktree.chain import (
    SHARED,
    Chain,
    find_chain,
    find_repositories,
    find_settings,
    judge_by_environ,
    read_tip,
    tell_secret,
)
from uwf_git.commands.worktree.record import (
    Inner,
    SplitOrigin,
    Worktree,
    describe_work,
    find_own_worktree,
    find_parent,
    find_split_origin,
    find_worktree,
    forget_worktree,
    forget_worktrees,
    list_parents,
    list_worktrees,
    note_that_stays,
    place_of,
    write_origin,
    write_worktree,
)
from uwf_git.commands.worktree.repository import (
    Git,
    add_worktree,
    commit_tree,
    find_commit,
    find_origin,
    git_of,
    move_ref,
    name_all,
    name_index,
    write_tree,
)
from uwf_git.debug_log import debug
from uwf_git.errors import Conflict, Refused, StoreFailed, UwfError, name_some
from uwf_git.model.names import ThreadId, is_thread_id
from uwf_git.model.text import quote_path
from uwf_git.store.durable import remove_file
from uwf_git.store.git.program import LINK, find_common_dir, find_place
from uwf_git.store.locks import hold_lock
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head
from uwf_git.store.threads.history import Snapshot, walk_trunks
from uwf_git.store.threads.local_files import (
    STAYS,
    ThreadBusy,
    files_size,
    find_workdir,
    forget_lock,
    has_files,
    lock_thread,
    set_workdir,
    workdirs_folder,
)

_SHOWN = 3

# Make the worktree of a branch, at the commit at which all branches of its split begin.


def worktree_gone(worktree: Worktree) -> Refused:
    """Say that somebody removed the worktree of a branch that has not ended."""
    thread, source = worktree.thread, quote_path(worktree.source)
    return Refused(
        f"the worktree of branch {thread} was removed: there is no {worktree.workdir}",
        code="worktree-gone",
        hint=f"what was not committed in it is lost; `uwf thread step {thread} --workdir "
        f"{source}` makes it again, with what was committed",
        thread=thread,
        path=worktree.workdir,
    )


def note_origin(
    store: Store, environ: Mapping[str, str], thread: ThreadId, *, at: str, source: str
) -> SplitOrigin:
    """Record the commit of *source* as the origin of all branches that *thread* has at *at*."""
    kept = find_settings(store, thread)
    origin = find_origin(environ, source, at=at, store=store.path, kept=kept, thread=thread)
    write_origin(store, thread, origin)
    return origin


def make_worktree(
    store: Store, environ: Mapping[str, str], owner: Snapshot, *, source: str
) -> Worktree:
    """Make the worktree of *owner* from the work directory *source*, unless it is there.

    What an older one had committed is in it again.
    """
    with lock_worktrees(store):
        found = find_own_worktree(store, owner)
        if found is not None and found.git_dir and os.path.isdir(found.workdir):
            return found
        begun = found
        if begun is None or not begun.git_dir or begun.source != source:
            begun = _plan(store, environ, owner, source)
        write_worktree(store, begun._replace(git_dir=""))
        made = begun._replace(git_dir=_add(store, environ, begun), is_removed=False)
        os.makedirs(made.workdir, exist_ok=True)
        write_worktree(store, made)
        set_workdir(store, made.thread, made.workdir)
        return made


def lock_worktrees(store: Store) -> AbstractContextManager[object]:
    """Be the only process that makes or removes worktrees of this store."""
    return hold_lock(store.local_path("locks", "worktrees"), wait=True)


def _plan(store: Store, environ: Mapping[str, str], owner: Snapshot, source: str) -> Worktree:
    thread, parent, at = owner.record.thread, find_parent(owner), find_isolation(owner) or ""
    origin = find_split_origin(store, parent, at)
    if origin is None or origin.source != source:
        origin = note_origin(store, environ, parent, at=at, source=source)
    path = place_of(store, thread)
    if path is None:
        raise Refused(
            "there is no home directory to keep the worktrees of branches in",
            code="no-place-for-worktrees",
            hint="set HOME, or XDG_STATE_HOME to a directory of yours",
        )
    return Worktree(
        thread,
        parent,
        source,
        origin.repository,
        origin.commit,
        path,
        os.path.join(path, origin.prefix).rstrip(os.sep),
    )


def _add(store: Store, environ: Mapping[str, str], worktree: Worktree) -> str:
    """Make the worktree as `git worktree add` does, and return its git directory."""
    git = git_of(environ, worktree.repository)
    head = find_head_of(environ, worktree) or worktree.base
    # Half of a worktree may be there, of a process that was killed: no agent has run in it.
    if os.path.lexists(worktree.path):
        git.run("worktree", "remove", "--force", "--force", worktree.path)
        shutil.rmtree(worktree.path, ignore_errors=True)
    own = add_worktree(worktree.repository, worktree.path, name=worktree.thread, head=head)
    kept = find_settings(store, worktree.parent)
    git = git_of(environ, own, worktree=worktree.path, kept=kept)
    git.run_guarded("read-tree", "--reset", "-u", "--no-recurse-submodules", head)
    return own


def find_head_of(environ: Mapping[str, str], worktree: Worktree) -> str | None:
    """Return the newest commit in the worktree, or of its work; None if git knows neither."""
    places = [(worktree.repository, name_work(worktree.thread))]
    if worktree.git_dir and os.path.isdir(worktree.git_dir):
        places.insert(0, (worktree.git_dir, "HEAD"))
    found = (find_commit(git_of(environ, git_dir), name) for git_dir, name in places)
    return next((each for each in found if each is not None), None)


# Keep what the agents of a branch that ends left, on its chain of files; remove its worktree.
#
# The commit is made before the branch ends, so that whoever joins it finds it. Its first parent
# is the chain, or where that would begin; its second has what the agents committed themselves.


def keep_work(store: Store, environ: Mapping[str, str], snapshot: Snapshot) -> str | None:
    """Commit what the branch at *snapshot* left; no agent of it is at work.

    A branch in which nothing ran, or nothing changed, has the commit at which it began.

    Returns:
        The ref of the commit; None if the branch, which works apart, does so on another machine.
    """
    parent, at = find_parent(snapshot), find_isolation(snapshot)
    thread, ref = snapshot.record.thread, name_work(snapshot.record.thread)
    with lock_worktrees(store):
        worktree = find_worktree(store, parent, thread)
        if worktree is not None and worktree.git_dir:
            _commit(store, environ, worktree)
            return ref
        origin = find_split_origin(store, parent, at)
        if origin is None:
            return None
        git = git_of(environ, origin.repository)
        if find_commit(git, ref) is None:
            move_ref(git, ref, origin.commit)
        return ref


def remove_ended(
    store: Store, environ: Mapping[str, str], snapshot: Snapshot, *, is_kept: bool
) -> None:
    """Remove the worktree of the thread at *snapshot*, which has ended, and of those around it.

    One in which another branch still works goes with that one. *is_kept*: the work of the thread
    itself was committed just now.
    """
    for at in (snapshot, *walk_trunks(store, snapshot)):
        if find_isolation(at) is not None and _has_ended(store, at.record.thread):
            worktree = find_own_worktree(store, at)
            if worktree is not None and not worktree.is_removed:
                with lock_worktrees(store):
                    _retire(store, environ, worktree, is_kept=is_kept and at is snapshot)


def sweep_worktrees(
    store: Store, environ: Mapping[str, str], parents: Iterable[ThreadId] | None = None
) -> int:
    """Remove the worktrees of branches that have ended; return how many that were.

    By default the worktrees of all threads. What cannot be removed now stays.
    """
    removed = 0
    for parent in list_parents(store) if parents is None else parents:
        for worktree in list_worktrees(store, parent):
            if not worktree.is_removed and _has_ended(store, worktree.thread):
                with suppress(ThreadBusy):
                    removed += _sweep(store, environ, worktree)
        if find_head(store, parent) is None:
            forget_worktrees(store, parent)
    return removed


def _has_ended(store: Store, thread: ThreadId) -> bool:
    head = find_head(store, thread)
    return head is None or head.archived


def _sweep(store: Store, environ: Mapping[str, str], worktree: Worktree) -> bool:
    thread = worktree.thread
    with lock_thread(store, thread, since_ms=0):
        try:
            with lock_worktrees(store):
                return _has_ended(store, thread) and _retire(store, environ, worktree)
        except (UwfError, OSError) as error:
            debug("W7TQ2N4C", "worktree stays", thread=thread, error=str(error))
            return False
        finally:
            if _has_ended(store, thread):
                forget_lock(store, thread)


def _retire(
    store: Store, environ: Mapping[str, str], worktree: Worktree, *, is_kept: bool = False
) -> bool:
    """Remove the worktree if nobody works in it; what was not yet committed is committed first."""
    found = find_worktree(store, worktree.parent, worktree.thread)
    if found is None or found.is_removed or _is_in_use(store, found):
        return False
    try:
        if found.git_dir and not is_kept:
            found = _commit(store, environ, found)
        if found.left_out:
            told = name_some(found.left_out, most=_SHOWN)
            note_that_stays(store, found, f"no commit may have these files, move them: {told}")
            return False
        # Half of it must not be committed over the whole, if this is cut short.
        found = found._replace(git_dir="")
        write_worktree(store, found)
        _remove(environ, found)
    except (UwfError, OSError) as error:
        debug("K3RW9DTF", "work cannot be kept", thread=worktree.thread, error=str(error))
        note_that_stays(store, found, str(error))
        return False
    remove_file(store.local_path(STAYS, found.thread))
    write_worktree(store, found._replace(is_removed=True))
    return True


def _is_in_use(store: Store, worktree: Worktree) -> bool:
    """Check whether a branch inside the branch still works in its worktree."""
    with suppress(FileNotFoundError):
        for name in filter(is_thread_id, os.listdir(workdirs_folder(store))):
            path = find_workdir(store, ThreadId(name)) or ""
            is_inside = f"{path}{os.sep}".startswith(worktree.path + os.sep)
            if is_inside and not _has_ended(store, ThreadId(name)):
                return True
    return False


def _commit(store: Store, environ: Mapping[str, str], worktree: Worktree) -> Worktree:
    """Let the ref of the work have what is in the worktree; return what is recorded."""
    if not os.path.isdir(worktree.repository):
        if os.path.isdir(worktree.path):
            raise StoreFailed(
                f"there is no {worktree.repository}, the repository of the worktree "
                f"{worktree.path}",
                code="project-gone",
                hint="put it back; or, if nothing in the worktree is wanted any more, remove that",
                thread=worktree.thread,
                path=worktree.repository,
            )
        return worktree
    git = git_of(environ, worktree.repository)
    ref = name_work(worktree.thread)
    head = find_head_of(environ, worktree) or worktree.base
    found = find_commit(git, ref)
    tip = found or worktree.base
    if os.path.isdir(worktree.path):
        own = worktree.git_dir if os.path.isdir(worktree.git_dir) else worktree.repository
        tell = partial(
            tell_secret,
            top=worktree.path,
            has_key=judge_by_environ(environ),
            known={*worktree.left_out, *read_tip(tip, git.ask("cat-file", "commit", tip)).left_out},
        )
        tree, inner, left_out = write_tree(
            environ,
            worktree,
            git_dir=own,
            head=head,
            tip=tip,
            tell_secret=tell,
            settings=find_settings(store, worktree.parent),
        )
        worktree = worktree._replace(inner=inner, left_out=left_out)
    else:
        tree = git.ask("rev-parse", f"{head}^{{tree}}")
        worktree = worktree._replace(left_out=())
    commit = _choose_commit(git, worktree, head, tip, tree)
    if found != commit:
        move_ref(git, ref, commit)
    committed = worktree._replace(commit=commit)
    write_worktree(store, committed)
    return committed


def _choose_commit(git: Git, worktree: Worktree, head: str, tip: str, tree: str) -> str:
    is_kept = not git.run("merge-base", "--is-ancestor", head, tip).status
    message = describe_work(worktree)
    its_tree, _, said = git.ask("log", "-1", "--format=%T%n%B", tip).partition("\n")
    # The last commit names what repositories inside had.
    if is_kept and its_tree == tree and (not worktree.inner or said.strip() == message.strip()):
        return tip
    return commit_tree(git, tree, (tip,) if is_kept else (tip, head), message)


def _remove(environ: Mapping[str, str], worktree: Worktree) -> None:
    if os.path.isdir(worktree.repository):
        git = git_of(environ, worktree.repository)
        # First those that agents made inside it.
        for path in sorted({worktree.path, *_list_inside(git, worktree.path)}, reverse=True):
            words = ("worktree", "remove", "--force", "--force", path)
            if git.run(*words).status and os.path.lexists(path):
                # Some package managers forbid the user to write in their folders.
                for folder, folders, _ in os.walk(path):
                    for each in (os.path.join(folder, name) for name in folders):
                        if not os.path.islink(each):
                            os.chmod(each, 0o700)
                shutil.rmtree(path)
                git.run(*words)
    shutil.rmtree(worktree.path, ignore_errors=True)
    remove_file(name_index(worktree.path))


def _list_inside(git: Git, path: str) -> list[str]:
    told = git.ask("worktree", "list", "--porcelain").split("\n")
    paths = (line.removeprefix("worktree ") for line in told if line.startswith("worktree "))
    return [each for each in paths if each.startswith(path + os.sep)]


# Forget the work of a branch whose thread is removed: its ref in the user's repository.


class ForgottenWork(NamedTuple):
    """Recorded files, whose ref was deleted; its commit stays until git prunes it."""

    ref: str
    commit: str | None
    """None: no ref was found, so it stays wherever the repository is now."""

    repository: str
    inner: tuple[Inner, ...] = ()
    """The same of repositories inside it."""

    others: "tuple[ForgottenWork, ...]" = ()
    """The same of other repositories in which the thread worked."""


def remove_left_worktree(
    store: Store, environ: Mapping[str, str], *, thread: ThreadId, parent: ThreadId
) -> None:
    found = find_worktree(store, parent, thread)
    if found is None or found.is_removed:
        return
    sweep_worktrees(store, environ, [parent])
    found = find_worktree(store, parent, thread)
    if found is not None and not found.is_removed:
        raise Conflict(
            f"the worktree of branch {found.thread} is still there: {found.path}",
            code="worktree-stays",
            hint="a branch works in it, or its work cannot be kept, as `git -C "
            f"{quote_path(found.path)} add --all --dry-run` may show, or secrets are in it, which "
            "no commit may have; after that `uwf gc` removes it",
            thread=found.thread,
            path=found.path,
        )


def remove_fork_worktree(
    store: Store, environ: Mapping[str, str], thread: ThreadId, *, cwd: str
) -> str | None:
    """Remove the work tree that uwf made for the fork *thread*; return its path if it stays.

    It stays if a thread or the caller, in *cwd*, works in it, or if ``_is_recorded`` is not sure.
    """
    path = place_of(store, thread)
    if path is None or not os.path.isdir(path):
        return None
    with suppress(UwfError, OSError):
        found = Worktree(thread, thread, path, "", "", path, path)
        chain = find_chain(store, thread, environ)
        if chain is not None and chain.worktree == path and not _is_in_use(store, found):
            common = find_common_dir(chain.git.place.git_dir)
            inside = _list_inside(git_of(environ, common), path)
            if not any(map(chain.surrounds, (cwd, common, *inside))) and _is_recorded(chain):
                _remove(environ, found._replace(repository=common))
                return None
    return path


def _is_recorded(chain: Chain) -> bool:
    """Ask git whether the chain has all files of its work tree but ignored ones, and a ref HEAD."""
    git = chain.git
    at, last = chain.read_tips()
    newest = last or at
    if newest is None or os.path.exists(os.path.join(git.place.git_dir, "modules")):
        return False
    # In an index without flags git looks at every file, and without submodules into these.
    remove_file(chain.index)
    rows = git.ask("ls-tree", "-r", "-z", newest.commit).split("\0")
    files = (row for row in rows if not row.startswith(LINK))
    git.ask("update-index", "-z", "--index-info", given=name_all(files))
    told = git.ask("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
    is_kept = git.ask("for-each-ref", "--count=1", "--contains=HEAD")
    return bool(is_kept) and all(row[1:2] in " D" for row in told.split("\0"))


def forget_work(
    store: Store, environ: Mapping[str, str], *, thread: ThreadId, parent: ThreadId, cwd: str
) -> ForgottenWork | None:
    """Delete the refs of the work of *thread*, a branch of *parent*, and what is recorded of it.

    Where the repository is gone, as of a project that was renamed, that around *cwd* has them.

    Returns:
        The work; None if this machine has none of *thread*.
    """
    # A branch in which nothing ran has no worktree, but a ref.
    origin = find_worktree(store, parent, thread) or find_split_origin(store, parent)
    if origin is None:
        return None
    forget_worktree(store, parent, thread)
    works = list(_delete_refs(store, environ, origin.repository, name_work(thread), cwd=cwd))
    return next((each for each in works if each.commit), None)


def forget_chain(
    store: Store, environ: Mapping[str, str], thread: ThreadId, *, cwd: str
) -> ForgottenWork | None:
    """Delete the refs of the files that were recorded for *thread*, as ``forget_work``.

    They are deleted where the thread works, and where it began, which may be another repository.
    """
    if not has_files(store, thread):
        return None
    present, began = find_repositories(store, thread, environ)
    ref, places = name_work(thread), dict.fromkeys((present, began))
    ours = (ref, f"{ref}{SHARED}", f"{ref}{SHARED}-*")
    works = [
        [work for pattern in ours for work in _delete_refs(store, environ, each, pattern, cwd=cwd)]
        for each in places
    ]
    found = [work for each in works for work in each if work.commit]
    is_lost = not all(works) and began and not os.path.isdir(began)
    if (is_lost or not any(works)) and os.path.exists(files_size(store, thread)):
        where = began or find_workdir(store, thread) or "its project"
        found.append(ForgottenWork(ref, None, where))
    return found[0]._replace(others=tuple(found[1:])) if found else None


def _delete_refs(
    store: Store, environ: Mapping[str, str], repository: str, pattern: str, *, cwd: str
) -> Iterator[ForgottenWork]:
    """Delete the refs like *pattern*, and yield them; one that stays has no commit.

    That of a branch stays while a fork here has joined it too, and goes with the last such fork.
    """
    if not os.path.isdir(repository):
        place = find_place(environ, cwd)
        if isinstance(place, str):
            return
        repository = find_common_dir(place.git_dir)
    git = git_of(environ, repository)
    for line in git.ask("for-each-ref", "--format=%(refname) %(objectname)", pattern).splitlines():
        ref, _, commit = line.partition(" ")
        _, shared, name = ref.rpartition("/")[2].rpartition(f"{SHARED}-")
        if not shared and git.ask("for-each-ref", f"{name_work(ThreadId('*'))}{SHARED}-{name}"):
            yield ForgottenWork(ref, None, repository)
            continue
        # Those of a branch go with its own ref; who moved that could name any other, and in a
        # repository inside an agent wrote the message.
        is_own = ref == name_work(ThreadId(name))
        said = os.fsdecode(git.run("cat-file", "commit", commit).stdout) if is_own else ""
        listed = rf"(?m)^(.*): (refs/uwf/inner/{re.escape(name)}/\S+) of (.*)$"
        inner = [
            Inner(path, each.ref, each.commit or "", each.repository)
            for path, its, there in re.findall(listed, said)
            for each in _delete_refs(store, environ, there, its, cwd=cwd)
        ]
        git.ask("update-ref", "--no-deref", "-d", ref, commit)
        yield ForgottenWork(ref, commit, repository, tuple(inner))
        if shared and is_thread_id(name) and find_head(store, ThreadId(name)) is None:
            work = name_work(ThreadId(name))
            yield from _delete_refs(store, environ, repository, work, cwd=cwd)
