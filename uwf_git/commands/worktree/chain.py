"""The files of a thread's turns: a chain of commits in the project's own repository.

``refs/uwf/work/<thread>`` has a commit for each turn that changed a file, and for what changed
between two turns. The index, HEAD, stash and reflogs of the user stay as they are: what git learns
is in an index of the thread's own, `<git dir>/uwf/files/<thread>.index`, which may be deleted. It
has what is recorded; what is tracked is asked of the user's index each time.

Objects first, refs last, the project before the store: a kill leaves at most a commit that no step
names, and the next turn builds on it. Recording never fails a turn.
"""

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import pairwise
from stat import S_ISLNK, S_ISREG
from typing import Any, NamedTuple, TypeAlias

from uwf_git.agents.files import is_secret_name, open_left_file
from uwf_git.commands.family import list_joined
from uwf_git.commands.split import name_work
from uwf_git.commands.worktree.record import LEFT_OUT
from uwf_git.commands.worktree.repository import (
    Git,
    commit_tree,
    find_commit,
    find_inside,
    git_of,
    move_ref,
    name_all,
)
from uwf_git.engine.masking import find_secrets, mask_bytes
from uwf_git.errors import Refused, StoreFailed, UwfError
from uwf_git.model.names import Oid, ThreadId, is_oid
from uwf_git.model.text import quote_path, visible_line
from uwf_git.store.durable import read_local, remove_file, replace_file
from uwf_git.store.git.config import GitConfig, parse_size, read_config_file
from uwf_git.store.git.program import (
    LINK,
    NO_WORK_TREE,
    Kept,
    Place,
    ProgramFailed,
    find_common_dir,
    find_place,
    read_settings,
)
from uwf_git.store.store import Store
from uwf_git.store.threads.history import (
    Snapshot,
    find_tip,
    read_root,
    read_snapshot,
    walk_history,
    walk_trunks,
)
from uwf_git.store.threads.local_files import (
    files_heads,
    files_index,
    files_size,
    find_workdir,
    settings_file,
)
from uwf_git.surroundings import is_in_repository

UNKNOWN = "-"
"""In place of a commit: the files were not recorded."""

RECORD_FILES = "uwf.recordFiles"
MAX_FILES = "uwf.maxRecordedFiles"
DEFAULT_MAX_BYTES = 1024**3

_LARGEST = 10 * 1024**2
_MOST_BYTES, _MOST_FILES = 200 * 1024**2, 20_000
_SHOWN = 20
_HEAD = "Uwf-Head: "

SHARED = "-shared"
"""Behind the name of a fork's chain: the ref that keeps the commits it shares with others.

Behind that, the id of a branch that was joined before the fork: its ref stays as long as this one.
"""

HasKey: TypeAlias = Callable[[bytes], bool] | None
"""Whether the content of a file has a key of the agent's environment; None: there is no key."""

_NAME_HAS_KEY = "a file whose name has a key of the environment in it: not told"
_KEY = "it has a key of the environment in it"
_BY_NAME = "by its name a secret"
_UNTRACKED_NOW = "tracked no more, and git does not list it"
_LONGEST_KEY = 64 * 1024
_OID_DIGITS = 40
_TRAILERS = (f"%(trailers:key={name},valueonly,separator=)" for name in ("Uwf-Thread", "Uwf-After"))
_MADE = "%x00".join(["%H", *_TRAILERS, "%P", "%s"])


class Tip(NamedTuple):
    commit: str
    tree: str
    head: str | None

    left_out: tuple[str, ...] = ()
    is_made: bool = True


class Made(NamedTuple):
    """A commit of a chain; a person's commit has no thread and no turn."""

    commit: str
    thread: str
    after: str
    """The commit of the thread after which the turn began."""

    parent: str
    title: str


class Chain:
    def __init__(
        self,
        store: Store,
        thread: ThreadId,
        environ: Mapping[str, str],
        place: Place,
        workdir: str,
    ) -> None:
        self.thread, self.ref = thread, name_work(thread)
        self.worktree = place.worktree or ""
        self.inner = os.path.relpath(os.path.realpath(workdir), self.worktree)
        """Where in the work tree the agents run."""

        self.index = files_index(store, thread)
        self._size = files_size(store, thread)
        self.git = Git(environ, place._replace(index_file=self.index))
        self._theirs = Git(environ, place)
        self._heads = files_heads(store, thread)
        self.refs = [self.ref]
        """Where its commits are; a reader of a fork adds the refs of the threads before it."""

        self.ranges: dict[Oid, str] = {}
        """`before..after` of each commit of the thread that changed files, newest first."""

        inside = find_inside(place, store.path)
        self._store = inside and inside + os.sep
        self._most_bytes = read_most(store.config)
        self._has_key: HasKey = None
        self._known: Collection[str] = ()
        # Who keeps a home folder in git asks for no look at all that is in it.
        config = read_config_file(os.path.join(find_common_dir(place.git_dir), "config"))
        shown = config.over(store.user_config).get("status.showUntrackedFiles") or ""
        self._untracked = "no" if shown.lower() in {"no", "false"} else "all"

    def begin(self, refs: Mapping[str, str]) -> None:
        """Make *refs* of commits of other chains; what was recorded there is not counted."""
        self._note_begun()
        rows = "".join(f"create {ref} {commit}\n" for ref, commit in refs.items())
        self.git.ask("update-ref", "--no-deref", "--stdin", given=rows.encode())

    def _note_begun(self) -> None:
        """Let one know that the thread has files, which may be empty or gone."""
        if not os.path.exists(self._size):
            os.makedirs(os.path.dirname(self._size), exist_ok=True)
            replace_file(self._size, b"0", durable=False)

    def record(
        self,
        title: str,
        after: str,
        has_key: HasKey,
        *,
        since: str | None = None,
        is_bounded: bool = True,
        branches: Iterable[ThreadId] = (),
    ) -> str:
        """Return the commit of the files as they are; a new commit if the newest differs.

        Without a chain, HEAD while the files are as HEAD has them, and HEAD is what it was *since*
        then. *after* is the commit of the thread after which the turn began. What *branches* left
        out since it has a key is left out.
        """
        at, tip = self.read_tips()
        head = None if at is None else at.commit
        known = () if tip is None else tip.left_out
        self._has_key, self._known = has_key, {*known, *self._list_left_out(branches)}
        try:
            tree, left_out = self._write(head, is_bounded=is_bounded)
        except ProgramFailed:
            # An agent may have spoilt the index, or git has pruned what only that names.
            remove_file(self.index)
            tree, left_out = self._write(head, is_bounded=is_bounded)
        known = tuple(each for each in known if not each.endswith(_UNTRACKED_NOW))
        if tip is None:
            is_same = at is not None and at.tree == tree and not left_out
            if head is not None and is_same and since in {None, head}:
                note_files(self._heads, after, head)
                return head
        elif (tip.tree, tip.head, known) == (tree, head, left_out):
            return self._end_gap(after, tip.commit)
        told = "".join(f"{LEFT_OUT}{each}\n" for each in left_out)
        trailers = f"Uwf-Thread: {self.thread}\nUwf-After: {after}\n"
        trailers += "" if head is None else f"{_HEAD}{head}\n"
        message = "\n\n".join(filter(None, [title, told.rstrip("\n"), trailers]))
        # What agents committed is kept too.
        moved = head if head is not None and (tip is None or tip.head != head) else None
        parents = dict.fromkeys(filter(None, [since if tip is None else tip.commit, moved]))
        commit = self._end_gap(after, commit_tree(self.git, tree, tuple(parents), message))
        self._note_begun()
        move_ref(self.git, self.ref, commit, old="" if tip is None else tip.commit)
        return commit

    def _list_left_out(self, branches: Iterable[ThreadId]) -> Iterator[str]:
        if refs := list(map(name_work, branches)):
            told = self.git.run("for-each-ref", "--format=%(contents)", *refs).stdout
            lines = os.fsdecode(told).split("\n")
            yield from (each.removeprefix(LEFT_OUT) for each in lines if each.startswith(LEFT_OUT))

    def has(self, commit: str) -> bool:
        """Check whether *commit* is one of the chain, which HEAD alone is not."""
        _, tip = self.read_tips(commit)
        return tip is not None and tip.is_made and self.reaches(commit)

    def reaches(self, commit: str) -> bool:
        """Check whether *commit* is one of the chain, or of what it began with."""
        return bool(self.git.run("for-each-ref", f"--contains={commit}", *self.refs).stdout)

    def find_begun(self) -> str | None:
        """Return the commit of the files as the last turn left them; None if nobody knows."""
        noted = self._find_noted()
        if noted == UNKNOWN:
            return None
        _, tip = self.read_tips()
        return find_commit(self.git, noted) if tip is None else tip.commit

    def _end_gap(self, after: str, commit: str) -> str:
        """Note *commit* of the turn after *after* if the one before was not recorded; return it."""
        if self._find_noted() == UNKNOWN:
            note_files(self._heads, after, commit)
        return commit

    def _find_noted(self) -> str | None:
        return next((known for _, known in reversed(read_heads(self._heads))), None)

    def surrounds(self, path: str) -> bool:
        return f"{os.path.realpath(path)}{os.sep}".startswith(self.worktree + os.sep)

    def read_log(self) -> list[Made]:
        """Return the commits of the chain, newest first, and those behind it; none without one."""
        return _read_log(self.git, self.refs)

    def read_ranges(self, commits: Sequence[Snapshot]) -> None:
        """Find ``refs`` and ``ranges`` of the history *commits*.

        A join, which is derived, names no files: the chain has what the branches left.
        """
        self.refs = _name_chains(at.record.thread for at in commits)
        self.ranges, made = {}, dict[tuple[str, str], str]()
        # It goes on behind the chain, as far as the project does.
        has_joins = any(each.record.event == "join" for each in commits)
        for each in self.read_log() if has_joins else ():
            turn = each.thread, each.after
            made[turn] = f"{each.parent}..{made.get(turn, each.commit).rpartition('..')[2]}"
        for at, before in pairwise(commits):
            turn = at.record.thread, before.turn_start
            found = made.get(turn) if at.record.event == "join" else at.record.files
            if found is not None:
                self.ranges[at.commit.oid] = found

    def read_tips(self, name: str | None = None) -> tuple[Tip | None, Tip | None]:
        """Return the commits of HEAD and of the chain, its newest or *name*, each or None."""
        asked = f"HEAD^{{commit}}\n{name or self.ref}^{{commit}}\n".encode()
        commits = list(_read_batch(self.git.run("cat-file", "--batch", given=asked).stdout))
        if any(len(name) != _OID_DIGITS for name, _ in filter(None, commits)):
            raise ProgramFailed("git", "has ids of more than 40 digits, which no step can name")
        head, tip = commits if len(commits) == len(asked.split()) else (None, None)
        return head and read_tip(*head), tip and read_tip(*tip)

    def _write(self, head: str | None, *, is_bounded: bool) -> tuple[str, tuple[str, ...]]:
        """Bring the own index up to date; return its tree, and what is told of files left out."""
        self._begin_index(head)
        gone, changed, left_out, size = self._look(*self._compare(head))
        if is_bounded:
            self._check_bound(size)
        # First, since below a folder that became a link nothing can be named.
        _stage(self.git, "--force-remove", gone)
        _stage(self.git, "--add", changed, "--remove", "--replace")
        return self.git.ask("write-tree"), left_out

    def _compare(self, head: str | None) -> tuple[Mapping[str, bool], Collection[str]]:
        """Compare the own index with the user's, by which files are tracked.

        Returns:
            The files that only the user's has, and whether each is a submodule; the files that
            only the own has.
        """
        words = ("ls-files", "-v", "--stage", "-z")
        ran = self._theirs.run(*words)
        if ran.status:
            # An agent may have spoilt it: what was tracked counts.
            return {}, ()
        theirs = set(os.fsdecode(ran.stdout).split("\0"))
        ours = set(self.git.ask(*words).split("\0"))
        flagged = {row.partition("\t")[2] for row in theirs ^ ours if row[:1] not in "HM"}
        if flagged:
            # git is told not to look at other files than before, as by a sparse checkout.
            now = [row for row in theirs if row.partition("\t")[2] in flagged]
            rows = [f"0 {'0' * _OID_DIGITS}\t{path}" for path in flagged] + [row[2:] for row in now]
            self.git.ask("update-index", "-z", "--index-info", given=name_all(rows))
            for word, tags in (("--skip-worktree", "Ss"), ("--assume-unchanged", "hs")):
                _stage(self.git, word, [row.partition("\t")[2] for row in now if row[0] in tags])
            self._drop_unfit(self.git, head, flagged)
            ours = set(self.git.ask(*words).split("\0"))
        own = {row.partition("\t")[2] for row in ours - theirs}
        pairs = (row.split("\t", 1) for row in theirs - ours)
        others = {path: about[2:].startswith(LINK) for about, path in pairs}
        found = [path for path in others.keys() - own if self._has(path, is_link=others[path])]
        return {path: others[path] for path in found}, own - others.keys()

    def _list_unfit(self, paths: set[str]) -> dict[str, str]:
        """Return which of *paths*, changed files that are tracked no more, may not be recorded."""
        if not paths:
            return {}
        words = ("ls-files", "--cached", "--ignored", "--exclude-standard", "-z")
        ignored = paths if self._untracked == "no" else paths & {*self.git.ask(*words).split("\0")}
        secrets = {path: _BY_NAME for path in paths if is_secret_name(path)}
        return secrets | dict.fromkeys(ignored, _UNTRACKED_NOW)

    def _has(self, path: str, *, is_link: bool) -> bool:
        """Check whether the work tree has a file *path*, not behind a link."""
        whole = os.path.join(self.worktree, path)
        folder = os.path.dirname(whole)
        is_file = os.path.isfile(whole) or os.path.islink(whole)
        is_there = os.path.lexists(os.path.join(whole, ".git")) if is_link else is_file
        return is_there and os.path.realpath(folder) == folder

    def _begin_index(self, head: str | None) -> None:
        """Make the own index, unless it is there."""
        # That of a git which was killed: the lock of the thread is held.
        remove_file(self.index + ".lock")
        if os.path.exists(self.index) and not os.path.islink(self.index):
            return
        os.makedirs(os.path.dirname(self.index), exist_ok=True)
        part = self.index + ".part"
        # git would write where a link leads.
        for each in (self.index, part, part + ".lock"):
            remove_file(each)
        with suppress(FileNotFoundError):
            # With its times: by them git knows which files it has to read.
            shutil.copy2(os.path.join(self.git.place.git_dir, "index"), part)
            place = self.git.place._replace(index_file=part)
            self._drop_unfit(self.git._replace(place=place), head)
            os.replace(part, self.index)

    def _drop_unfit(self, git: Git, head: str | None, paths: Collection[str] = ()) -> None:
        """Make what is staged, of all files or of *paths*, as in HEAD if it is unfit."""
        words = ("diff", "--cached", "--name-only", "--no-renames", "--diff-filter=d")
        listed = ("ls-files", "-z") if head is None else (*words, "-z", head)
        staged = filter(paths.__contains__ if paths else None, git.ask(*listed).split("\0"))
        unfit = [path for path in staged if self._judge(path, is_new=True)[0]]
        if head is None:
            _stage(git, "--force-remove", unfit)
        elif unfit:
            back = ("--literal-pathspecs", "reset", "--quiet", "--pathspec-from-file=-")
            git.ask(*back, "--pathspec-file-nul", head, given=name_all(unfit))

    def _look(
        self, more: Mapping[str, bool], loose: Collection[str]
    ) -> tuple[list[str], list[str], tuple[str, ...], int]:
        """Return what is gone, what has changed, what is told of files left out, and the bytes.

        *more* files are tracked than the index has, *loose* ones are not.
        """
        words = ("--porcelain=v2", "-z", f"--untracked-files={self._untracked}", "--no-renames")
        told = self.git.ask("status", *words, "--ignore-submodules=dirty")
        gone: list[str] = []
        changed: list[str] = []
        left_out: list[str] = []
        size = 0
        rows = list(_read_status(told, more))
        unfit = self._list_unfit({path for path, is_gone, *_ in rows if not is_gone} & {*loose})
        for path, is_gone, is_new, is_link in rows:
            if self._store and path.startswith(self._store):
                continue
            if is_gone or path in unfit:
                gone.append(path)
                left_out += [f"{_spell(path)}: {unfit[path]}"] if path in unfit else []
                continue
            if self._has_key is not None and self._has_key(os.fsencode(path)):
                left_out.append(_NAME_HAS_KEY)
                continue
            problem, bytes_ = (None, 0) if is_link else self._judge(path, is_new=is_new)
            if problem is None and len(changed) >= _MOST_FILES:
                problem = f"more than {_MOST_FILES} files"
            if problem is None and size + bytes_ > _MOST_BYTES:
                problem = f"more than {_MOST_BYTES} bytes"
            if problem is None:
                changed.append(path)
                size += bytes_
            else:
                left_out.append(f"{_spell(path)}: {problem}")
        with_key = [each for each in left_out if each.endswith(_KEY)]
        others = [each for each in left_out if not each.endswith(_KEY)]
        unnamed = len(others) - _SHOWN
        others[_SHOWN:] = [f"and {unnamed} more"] if unnamed > 0 else []
        return gone, changed, (*with_key, *others), size

    def _judge(self, path: str, *, is_new: bool) -> tuple[str | None, int]:
        """Return why a changed file is left out, None if it is not, and its size in bytes."""
        if path.endswith("/"):
            return "a repository inside", 0
        if f"{_spell(path)}: {_KEY}" in self._known:
            # Who looks without the key of then cannot find it.
            return _KEY, 0
        if is_new and is_secret_name(path):
            return _BY_NAME, 0
        whole = os.path.join(self.worktree, path)
        try:
            found = os.lstat(whole)
            is_link = S_ISLNK(found.st_mode)
            if not is_link and not S_ISREG(found.st_mode):
                return "neither a file nor a link", 0
            if found.st_size > _LARGEST:
                return f"{found.st_size} bytes", 0
            if _holds_key(whole, self._has_key):
                return _KEY, 0
        except OSError as error:
            return f"cannot be read: {error.strerror}", 0
        return None, 0 if is_link else found.st_size

    def _check_bound(self, size: int) -> None:
        whole = int(read_local(self._size) or b"0") + size
        if whole > self._most_bytes:
            raise StoreFailed(f"{whole} bytes are more than {MAX_FILES} allows for a thread")
        if size:
            replace_file(self._size, b"%d" % whole, durable=False)


def tell_secret(
    path: str, status: str, *, top: str, has_key: HasKey, known: Collection[str]
) -> str | None:
    """Return the line on the file *path* below *top*, whose status is A if it is new.

    None: a commit may have it. *known* are lines of before, when other keys may have been known.
    """
    if has_key is not None and has_key(os.fsencode(path)):
        return _NAME_HAS_KEY
    with_key = f"{_spell(path)}: {_KEY}"
    if with_key in known:
        return with_key
    if status == "A" and is_secret_name(path):
        return f"{_spell(path)}: {_BY_NAME}"
    # Suppressed: git tells what cannot be read.
    with suppress(OSError):
        return with_key if _holds_key(os.path.join(top, path), has_key) else None
    return None


def _holds_key(whole: str, has_key: HasKey) -> bool:
    if os.path.islink(whole):
        return has_key is not None and has_key(os.fsencode(os.readlink(whole)))
    with closing(open_left_file(whole)) as file:
        parts = range(0, file.size(), _LARGEST)
        # Each part with the beginning of the next.
        return has_key is not None and any(
            has_key(file.read(start, _LARGEST + _LONGEST_KEY)) for start in parts
        )


def judge_by_environ(environ: Mapping[str, str]) -> HasKey:
    secrets = find_secrets(environ)
    return (lambda content: mask_bytes(content, secrets) != content) if secrets else None


def _stage(git: Git, word: str, paths: list[str], *words: str) -> None:
    if paths:
        git.ask("update-index", word, *words, "-z", "--stdin", given=name_all(paths))


def find_chain(
    store: Store,
    thread: ThreadId,
    environ: Mapping[str, str],
    *,
    is_reading: bool = False,
    cwd: str | None = None,
    ref: str = "",
) -> Chain | None:
    """Return the chain of *thread* in its work directory; None outside of repositories.

    StoreFailed if git does not open the repository, as another user's that is not trusted.

    *is_reading*: the directory of a thread around it will do where its own is gone. Where all are
    gone, as of a project that was renamed, *cwd* will do if it has *ref*, or one of the chain.
    """
    workdir = find_workdir(store, thread)
    if is_reading and not os.path.isdir(workdir or ""):
        tip = find_tip(store, thread)
        around = () if tip is None else walk_trunks(store, tip)
        places = (find_workdir(store, each.record.thread) for each in around)
        workdir = next((each for each in places if each and os.path.isdir(each)), None)
    problem = None
    for path in (workdir, cwd):
        if path is None or not is_in_repository(path):
            continue
        place = find_place(environ, path, find_settings(store, thread))
        if isinstance(place, str):
            why = f"git does not open the repository around {path}: {place}"
            hint = f"`git -C {quote_path(path)} status` says more"
            if place != NO_WORK_TREE:
                problem = problem or StoreFailed(why, hint=hint)
            continue
        chain = Chain(store, thread, environ, place, path)
        if path is workdir or chain.git.run("for-each-ref", ref or f"{chain.ref}*").stdout:
            return chain
    if problem is not None:
        raise problem
    return None


def begin_fork(
    store: Store, environ: Mapping[str, str], thread: ThreadId, begun: Oid, files: str | None
) -> None:
    """Keep the files that *thread*, a fork at its commit *begun*, shares with others.

    *files* is the commit of what is in the work directory, with which its chain begins; None:
    nobody knows what is there, and a ref of its own keeps the newest commit of the history.
    """
    with suppress(UwfError, OSError):
        chain = find_chain(store, thread, environ)
        if chain is None:
            return
        chain.read_ranges(list(walk_history(store, begun, through_forks=True)))
        newest = next(iter(chain.ranges.values()), "").partition("..")[2] or None
        refs = {} if files is None else {chain.ref: files}
        if files is None and newest and find_commit(chain.git, newest):
            refs[chain.ref + SHARED] = newest
        ends = list_joined(store, begun, through_forks=True)
        joined = {name_work(read_snapshot(store, end).record.thread) for end in ends}
        words = f"--format={chain.ref}{SHARED}-%(refname:lstrip=3) %(objectname)"
        told = chain.git.ask("for-each-ref", words, *joined) if joined else ""
        refs |= dict(line.split() for line in told.splitlines())
        if refs:
            chain.begin(refs)


def find_settings(store: Store, thread: ThreadId) -> Kept:
    """Return the settings of git that the project had when the outermost thread began."""
    tip = find_tip(store, thread)
    if tip is not None:
        thread = read_root(store, tip).record.thread
    return read_settings(settings_file(store, thread))


def find_repositories(
    store: Store, thread: ThreadId, environ: Mapping[str, str], *, cwd: str | None = None
) -> tuple[str, str]:
    """Return where the files of *thread* are recorded: where it works now, and where it began.

    They may be the same, or gone. *cwd* counts where the directory of the thread is gone, as of a
    project that was renamed.
    """
    began, chain = find_settings(store, thread).repository, None
    with suppress(StoreFailed):
        chain = find_chain(store, thread, environ, is_reading=True, cwd=cwd)
    # Where the work tree of a fork is gone, its repository is not.
    return began if chain is None else find_common_dir(chain.git.place.git_dir), began


def read_log_of(
    store: Store, thread: ThreadId, names: Iterable[ThreadId], *, cwd: str
) -> list[Made]:
    """Return the commits of the chains of *names*, wherever those of *thread* may be."""
    places = dict.fromkeys(find_repositories(store, thread, store.environ, cwd=cwd))
    gits = [git_of(store.environ, each) for each in places if os.path.isdir(each)]
    return [made for git in gits for made in _read_log(git, _name_chains(names))]


def _name_chains(threads: Iterable[ThreadId]) -> list[str]:
    names = [name_work(each) for each in dict.fromkeys(threads)]
    return names + [each + SHARED for each in names]


def _read_log(git: Git, refs: Iterable[str]) -> list[Made]:
    words = ("--first-parent", "--topo-order", "--ignore-missing", f"--format={_MADE}")
    told = git.run("log", *words, *refs, "--").stdout.decode(errors="replace")
    made = (Made(*line.split("\0", 4)) for line in told.split("\n") if line)
    return [each._replace(parent=each.parent.partition(" ")[0]) for each in made]


def view_ranges(store: Store, thread: ThreadId, ranges: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the document of each of *ranges*; numbers only if the project is here."""
    found = {each: dict(zip(("before", "after"), each.split(".."), strict=True)) for each in ranges}
    with suppress(UwfError, OSError):
        is_asked = found and store.environ
        chain = find_chain(store, thread, store.environ, is_reading=True) if is_asked else None
        if chain is not None:
            asked = "".join(f"{each['after']} {each['before']}\n" for each in found.values())
            words = ("--stdin", "-r", "--root", "--always", "--numstat", "--no-renames")
            told = chain.git.run("diff-tree", *words, given=asked.encode()).stdout.decode()
            # How many files and lines changed, by the commit that was compared.
            counts: dict[str, dict[str, int]] = {}
            for line in told.splitlines():
                added, *more = line.split("\t")
                if not more:
                    now = counts[line] = {"changed": 0, "added": 0, "removed": 0}
                    continue
                now["changed"] += 1
                now["added"] += int(added) if added.isdecimal() else 0
                now["removed"] += int(more[0]) if more[0].isdecimal() else 0
            return {name: {**each, **counts.get(each["after"], {})} for name, each in found.items()}
    return dict(found)


def read_heads(path: str) -> list[tuple[str, str]]:
    """Return what ``note_files`` noted: the commits before turns, and those of their files."""
    text = read_local(path).decode(errors="replace")
    rows = (line.partition(" ") for line in text.split("\n"))
    return [(after, known) for after, _, known in rows if is_oid(known) or known == UNKNOWN]


def note_files(path: str, after: str, known: str) -> None:
    """Note of the turn after *after* what no commit of the chain tells, unless it was so before.

    *known* is the commit of its files (HEAD, before the chain begins), or ``UNKNOWN``: they were
    not recorded, and those of later turns neither, until one is noted again.
    """
    rows = read_heads(path)
    if not rows or rows[-1][1] != known:
        told = "".join(f"{turn} {each}\n" for turn, each in [*rows, (after, known)])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        replace_file(path, told.encode(), durable=False)


def note_unrecorded(store: Store, thread: ThreadId, after: str) -> None:
    """Note that the files of the turn after *after* were not recorded."""
    note_files(files_heads(store, thread), after, UNKNOWN)


def read_most(config: GitConfig) -> int:
    text = config.get(MAX_FILES)
    size = parse_size(text) if text else DEFAULT_MAX_BYTES
    if size is None:
        raise Refused(
            f"{MAX_FILES} is {(text or '')[:40]!r}, not a size such as 1g",
            code="bad-files-setting",
            hint=f"set it anew: `uwf config set {MAX_FILES} 1g`",
            setting=MAX_FILES,
        )
    return size


def _read_batch(told: bytes) -> Iterator[tuple[str, str] | None]:
    """Yield the id and the content of each commit of `git cat-file --batch`; None for a missing."""
    while told:
        head, _, told = told.partition(b"\n")
        words = head.split()
        if words[-1] == b"missing":
            yield None
            continue
        size = int(words[2])
        yield words[0].decode(), os.fsdecode(told[:size])
        told = told[size + 1 :]


def read_tip(commit: str, content: str) -> Tip:
    fields, _, message = content.partition("\n\n")
    tree = fields.partition("\n")[0].removeprefix("tree ")
    lines = message.split("\n")
    left_out = [line.removeprefix(LEFT_OUT) for line in lines if line.startswith(LEFT_OUT)]
    # A person may quote such lines above.
    trailers = message.rstrip("\n").rpartition("\n\n")[2].split("\n")
    is_made = any(line.startswith("Uwf-Thread: ") for line in trailers)
    head = next((each.removeprefix(_HEAD) for each in trailers if each.startswith(_HEAD)), "")
    return Tip(commit, tree, head if is_oid(head) else None, tuple(left_out), is_made)


def _read_status(told: str, tracked: Mapping[str, bool]) -> Iterator[tuple[str, bool, bool, bool]]:
    """Yield what is not as the index has it: a path, and whether it is gone, new, a submodule.

    *tracked* files are not in the index yet; they are new unless HEAD has them.
    """
    in_head = set()
    for row in told.split("\0"):
        if row.startswith("? "):
            if row[2:].rstrip("/") not in tracked:
                yield row[2:], False, True, False
        elif row.startswith("u "):
            yield row.split(" ", 10)[10], row.split(" ", 7)[6] == "000000", False, False
        elif row.startswith("1 "):
            _, states, submodule, *_, path = row.split(" ", 8)
            if states[0] == "D":
                in_head.add(path)
            if states[1] != ".":
                yield path, states[1] == "D", False, submodule[0] == "S"
    for path, is_link in tracked.items():
        yield path, False, path not in in_head, is_link


def _spell(path: str) -> str:
    return visible_line(os.fsencode(path).decode(errors="backslashreplace"))
