"""The files of a thread's turns: a chain of commits in the project's own repository.

``refs/uwf/work/<thread>`` has a commit for each turn that changed a file, and for what changed
between two turns. The index, HEAD, stash and reflogs of the user stay as they are: what git learns
is in an index of the thread's own, `<git dir>/uwf/files/<thread>.index`, which may be deleted.

Objects first, refs last, the project before the store: a kill leaves at most a commit that no step
names, and the next turn builds on it. Recording never fails a turn.
"""

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from stat import S_ISLNK, S_ISREG
from typing import Any, NamedTuple, TypeAlias

from uwf_git.agents.files import is_secret_name, open_left_file
from uwf_git.commands.split import name_work
from uwf_git.commands.worktree.record import LEFT_OUT
from uwf_git.commands.worktree.repository import Git, commit_tree, find_commit, move_ref
from uwf_git.errors import Refused, UwfError
from uwf_git.model.names import ThreadId, is_oid
from uwf_git.model.text import visible_line
from uwf_git.store.durable import read_if_there, remove_file, replace_file
from uwf_git.store.git.config import GitConfig, parse_size, read_config_file
from uwf_git.store.git.fenced import Place, find_common_dir, find_place
from uwf_git.store.git.program import ProgramFailed
from uwf_git.store.store import Store
from uwf_git.store.threads.history import find_settings, find_tip, walk_trunks
from uwf_git.store.threads.local_files import files_index, files_size, find_workdir
from uwf_git.surroundings import is_in_repository

RECORD_FILES = "uwf.recordFiles"
MAX_FILES = "uwf.maxRecordedFiles"
DEFAULT_MAX_BYTES = 1024**3

_LARGEST = 10 * 1024**2
_MOST_BYTES, _MOST_FILES = 200 * 1024**2, 20_000
_SHOWN = 20
_HEAD = "Uwf-Head: "

HasKey: TypeAlias = Callable[[bytes], bool] | None
"""Whether the content of a file has a key of the agent's environment; None: there is no key."""

_NAME_HAS_KEY = "a file whose name has a key of the environment in it: not told"
_KEY = "it has a key of the environment in it"
_BY_NAME = "by its name a secret"
_LONGEST_KEY = 64 * 1024
_OID_DIGITS = 40
_TRAILERS = (f"%(trailers:key={name},valueonly,separator=)" for name in ("Uwf-Thread", "Uwf-After"))
_MADE = " ".join(["%H", *_TRAILERS])
_UNTRACKED = "status.showUntrackedFiles"


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


class _Changes(NamedTuple):
    """What is not as the thread's own index has it."""

    gone: list[str]
    changed: list[str]
    left_out: tuple[str, ...]
    size: int


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

        self._own_index = os.path.join(place.git_dir, "index")
        self.index = files_index(store, thread)
        self._size = files_size(store, thread)
        self.git = Git(environ, place._replace(index_file=self.index))
        inside = os.path.relpath(os.path.realpath(store.path), self.worktree)
        # git lists nothing of its own directory.
        is_outside = inside.split(os.sep)[0] in {os.pardir, ".git"}
        self._store = "" if is_outside else inside + os.sep
        self._most_bytes = read_most(store.config)
        # Who keeps a home folder in git asks for no look at all that is in it.
        config = read_config_file(os.path.join(find_common_dir(place.git_dir), "config"))
        shown = config.over(store.user_config).get(_UNTRACKED) or ""
        self._untracked = "no" if shown.lower() in {"no", "false"} else "all"

    def begin(self, commit: str) -> None:
        """Go on from *commit* of another chain; what was recorded until then is not counted."""
        os.makedirs(os.path.dirname(self._size), exist_ok=True)
        replace_file(self._size, b"0", durable=False)
        move_ref(self.git, self.ref, commit, old="")

    def record(
        self,
        title: str,
        after: str,
        has_key: HasKey,
        *,
        since: str | None = None,
        is_bounded: bool = True,
    ) -> str:
        """Return the commit of the files as they are; a new commit if the newest differs.

        Without a chain, HEAD while the files are as HEAD has them, and HEAD is what it was *since*
        then. *after* is the commit of the thread after which the turn began.
        """
        at, tip = self.read_tips()
        head = None if at is None else at.commit
        try:
            self._begin_index(head, has_key)
            changes = self._look(has_key, tip)
        except ProgramFailed:
            # An agent may have spoilt the index.
            remove_file(self.index)
            self._begin_index(head, has_key)
            changes = self._look(has_key, tip)
        if is_bounded:
            self._check_bound(changes.size)
        # First, since below a folder that became a link nothing can be named.
        _stage(self.git, "--force-remove", changes.gone)
        _stage(self.git, "--add", changes.changed, "--remove", "--replace")
        tree = self.git.ask("write-tree")
        if tip is None:
            is_same = at is not None and at.tree == tree and not changes.left_out
            if head is not None and is_same and since in {None, head}:
                return head
        elif (tip.tree, tip.head, tip.left_out) == (tree, head, changes.left_out):
            return tip.commit
        told = "".join(f"{LEFT_OUT}{each}\n" for each in changes.left_out)
        trailers = f"Uwf-Thread: {self.thread}\nUwf-After: {after}\n"
        trailers += "" if head is None else f"{_HEAD}{head}\n"
        message = "\n\n".join(filter(None, [title, told.rstrip("\n"), trailers]))
        # What agents committed is kept too.
        moved = head if head is not None and (tip is None or tip.head != head) else None
        parents = dict.fromkeys(filter(None, [since if tip is None else tip.commit, moved]))
        commit = commit_tree(self.git, tree, tuple(parents), message)
        if not os.path.exists(self._size):
            # By it one knows that the thread has files, which may be empty or gone.
            replace_file(self._size, b"0", durable=False)
        move_ref(self.git, self.ref, commit, old="" if tip is None else tip.commit)
        return commit

    def has(self, commit: str) -> bool:
        """Check whether *commit* is one of the chain, which HEAD alone is not."""
        _, tip = self.read_tips(commit)
        return tip is not None and tip.is_made and self.reaches(commit)

    def reaches(self, commit: str) -> bool:
        """Check whether *commit* is one of the chain, or of what it began with."""
        return not self.git.run("merge-base", "--is-ancestor", commit, self.ref).status

    def surrounds(self, path: str) -> bool:
        return f"{os.path.realpath(path)}{os.sep}".startswith(self.worktree + os.sep)

    def read_log(self) -> list[Made]:
        """Return the commits of the chain, newest first, and those behind it; none without one."""
        ran = self.git.run("log", "--first-parent", f"--format={_MADE}", self.ref)
        return [Made(*line.split(" ")) for line in ran.stdout.decode().splitlines()]

    def read_tips(self, name: str | None = None) -> tuple[Tip | None, Tip | None]:
        """Return the commits of HEAD and of the chain, its newest or *name*, each or None."""
        asked = f"HEAD^{{commit}}\n{name or self.ref}^{{commit}}\n".encode()
        commits = list(_read_batch(self.git.run("cat-file", "--batch", given=asked).stdout))
        if any(len(name) != _OID_DIGITS for name, _ in filter(None, commits)):
            problem = "has ids of more than 40 digits there, which no step can name"
            raise ProgramFailed("git", problem)
        head, tip = commits if len(commits) == len(asked.split()) else (None, None)
        return head and read_tip(*head), tip and read_tip(*tip)

    def _begin_index(self, head: str | None, has_key: HasKey) -> None:
        """Make the own index, unless it is there; what is staged and unfit is as in HEAD."""
        # That of a git which was killed: the lock of the thread is held.
        remove_file(self.index + ".lock")
        if os.path.exists(self.index):
            return
        os.makedirs(os.path.dirname(self.index), exist_ok=True)
        part = self.index + ".part"
        git = self.git._replace(place=self.git.place._replace(index_file=part))
        remove_file(part + ".lock")
        with suppress(FileNotFoundError):
            # With its times: by them git knows which files it has to read.
            shutil.copy2(self._own_index, part)
            words = ("diff", "--cached", "--name-only", "--no-renames", "--diff-filter=d")
            listed = ("ls-files", "-z") if head is None else (*words, "-z", head)
            staged = filter(None, git.ask(*listed).split("\0"))
            unfit = [path for path in staged if self._judge(path, has_key, is_new=True)[0]]
            if head is None:
                _stage(git, "--force-remove", unfit)
            elif unfit:
                given = os.fsencode("\0".join(unfit) + "\0")
                back = ("--literal-pathspecs", "reset", "--quiet", "--pathspec-from-file=-")
                git.ask(*back, "--pathspec-file-nul", head, given=given)
            os.replace(part, self.index)

    def _look(self, has_key: HasKey, tip: Tip | None) -> _Changes:
        words = ("--porcelain=v2", "-z", f"--untracked-files={self._untracked}", "--no-renames")
        told = self.git.ask("status", *words, "--ignore-submodules=dirty")
        gone: list[str] = []
        changed: list[str] = []
        left_out: list[str] = []
        size = 0
        # Who looks without the key of then cannot find it: such a file stays out.
        had_key = () if tip is None else [each for each in tip.left_out if each.endswith(_KEY)]
        for path, is_gone, is_new, is_link in _read_status(told):
            if self._store and path.startswith(self._store):
                continue
            if is_gone:
                gone.append(path)
                continue
            if has_key is not None and has_key(os.fsencode(path)):
                left_out.append(_NAME_HAS_KEY)
                continue
            problem, bytes_ = (None, 0) if is_link else self._judge(path, has_key, is_new=is_new)
            if f"{_spell(path)}: {_KEY}" in had_key:
                problem = _KEY
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
        more = len(others) - _SHOWN
        others[_SHOWN:] = [f"and {more} more"] if more > 0 else []
        return _Changes(gone, changed, (*with_key, *others), size)

    def _judge(self, path: str, has_key: HasKey, *, is_new: bool) -> tuple[str | None, int]:
        """Return why a changed file is left out, None if it is not, and its size in bytes."""
        if path.endswith("/"):
            return "a repository inside", 0
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
            if _holds_key(whole, has_key):
                return _KEY, 0
        except OSError as error:
            return f"cannot be read: {error.strerror}", 0
        return None, 0 if is_link else found.st_size

    def _check_bound(self, size: int) -> None:
        whole = int(read_if_there(self._size) or b"0") + size
        if whole > self._most_bytes:
            problem = f"was not asked: {whole} bytes are more than {MAX_FILES} allows for a thread"
            raise ProgramFailed("git", problem)
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


def _stage(git: Git, word: str, paths: list[str], *words: str) -> None:
    if paths:
        given = os.fsencode("\0".join(paths) + "\0")
        git.ask("update-index", word, *words, "-z", "--stdin", given=given)


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

    *is_reading*: the directory of a thread around it will do where its own is gone. Where all are
    gone, as of a project that was renamed, *cwd* will do if its repository has *ref*, or the chain.
    """
    workdir = find_workdir(store, thread)
    if is_reading and not os.path.isdir(workdir or ""):
        tip = find_tip(store, thread)
        around = () if tip is None else walk_trunks(store, tip)
        places = (find_workdir(store, each.record.thread) for each in around)
        workdir = next((each for each in places if each and os.path.isdir(each)), None)
    for path in (workdir, cwd):
        if path is None or not is_in_repository(path):
            continue
        place = find_place(environ, path, find_settings(store, thread))
        if isinstance(place, str):
            continue
        chain = Chain(store, thread, environ, place, path)
        if path is workdir or find_commit(chain.git, ref or chain.ref) is not None:
            return chain
    return None


def view_ranges(store: Store, thread: ThreadId, ranges: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the document of each of *ranges*; numbers only if the project is here."""
    found = {each: dict(zip(("before", "after"), each.split(".."), strict=True)) for each in ranges}
    with suppress(UwfError, OSError):
        chain = None
        if found and store.environ:
            chain = find_chain(store, thread, store.environ, is_reading=True)
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
    is_made = any(line.startswith("Uwf-Thread: ") for line in lines)
    head = next((line.removeprefix(_HEAD) for line in lines[::-1] if line.startswith(_HEAD)), "")
    return Tip(commit, tree, head if is_oid(head) else None, tuple(left_out), is_made)


def _read_status(told: str) -> Iterator[tuple[str, bool, bool, bool]]:
    """Yield what is not as the index has it: a path, and whether it is gone, new, a submodule."""
    for row in told.split("\0"):
        if row.startswith("? "):
            yield row[2:], False, True, False
        elif row.startswith("u "):
            yield row.split(" ", 10)[10], row.split(" ", 7)[6] == "000000", False, False
        elif row.startswith("1 "):
            _, states, submodule, *_, path = row.split(" ", 8)
            if states[1] != ".":
                yield path, states[1] == "D", False, submodule[0] == "S"


def _spell(path: str) -> str:
    return visible_line(os.fsencode(path).decode(errors="backslashreplace"))
