"""The user's repository, as git itself sees it, and what is in a work tree, written as a tree."""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias
from urllib.parse import quote

from uwf_git.agents.process import ToolRequest, run_tool
from uwf_git.commands.worktree.record import Inner, SplitOrigin, Worktree, describe_work
from uwf_git.errors import Refused, name_some
from uwf_git.model.text import quote_path
from uwf_git.store.durable import remove_file, replace_file
from uwf_git.store.git.program import (
    LINK,
    NOTHING_KEPT,
    Kept,
    Place,
    ProgramFailed,
    Ran,
    fenced,
    find_common_dir,
    find_inner,
    find_place,
    list_links,
    list_uncommitted,
    run_fenced,
    share_sparseness,
)
from uwf_git.store.locks import RefLocked, find_held_lock

# The user's repository, as git itself sees it: its state, a new worktree, a tree out of a worktree.
#
# No hook of the repository runs either: it may refuse a commit, and then an edit would be lost.

_NAME, _ADDRESS, _ROLES = "uwf", "uwf@uwf", ("AUTHOR", "COMMITTER")
_SHOWN = 3


def _not_isolated(path: str, problem: str) -> Refused:
    return Refused(
        f"no worktrees can be made from the work directory {path}: {problem}",
        code="not-isolated",
        hint="branches with `isolation: worktree` need a commit of a git repository to begin "
        "at; another directory: --workdir PATH",
        path=path,
    )


class Git(NamedTuple):
    """git, told which repository it works on; nothing that this names runs."""

    environ: Mapping[str, str]
    place: Place

    def run(self, *words: str, given: bytes = b"") -> Ran:
        return run_fenced(self.environ, self.place, *words, given=given)

    def ask(self, *words: str, given: bytes = b"") -> str:
        """Run git, and return what it printed, without the last newline."""
        ran = self.run(*words, given=given)
        if ran.status:
            raise _failed(words[0], ran)
        return os.fsdecode(ran.stdout).removesuffix("\n")

    def run_guarded(self, *words: str) -> None:
        """Run git so that it ends when this process does."""
        with fenced(self.environ, self.place) as environment:
            into = self.place.worktree or environment["GIT_DIR"]
            request = ToolRequest(("git", "-C", into, *words), environment)
            try:
                ran = run_tool(request, on_output=lambda _chunk: None)
            except OSError as error:
                raise ProgramFailed("git", f"could not be started: {error.strerror}") from error
        if ran.exit_code:
            raise _failed(words[0], Ran(ran.exit_code, ran.head + ran.tail, b""))


def _failed(verb: str, ran: Ran) -> ProgramFailed:
    # What git advises about a lock comes after the line that names it.
    lock = find_held_lock(os.fsdecode(ran.stderr or ran.stdout))
    if not lock:
        return ProgramFailed("git", f"{verb} failed: {ran.last_line}")
    held = RefLocked(os.path.realpath(lock))
    return ProgramFailed("git", f"{verb} failed: {held.message}", hint=held.hint)


def git_of(
    environ: Mapping[str, str],
    git_dir: str,
    *,
    worktree: str | None = None,
    kept: Kept = NOTHING_KEPT,
) -> Git:
    """Return git for the git directory *git_dir*, wherever ``.git`` files point to."""
    return Git(environ, Place(git_dir, worktree, kept=kept))


def find_origin(
    environ: Mapping[str, str],
    workdir: str,
    *,
    at: str,
    store: str,
    kept: Kept = NOTHING_KEPT,
    thread: str = "ID",
) -> SplitOrigin:
    """Return the commit of the repository around *workdir*, which has no uncommitted change.

    The *store* in use may be inside: what is in it is no change.
    """
    place = find_place(environ, workdir, kept)
    if isinstance(place, str):
        raise _not_isolated(workdir, place)
    commit = find_commit(Git(environ, place), "HEAD")
    if commit is None:
        raise _not_isolated(workdir, "its repository has no commit yet")
    inside = find_inside(place, store)
    changed = list_uncommitted(environ, place, left_out=inside)
    if changed:
        aside = f"; {inside} is the store: put it into .git/info/exclude first" if inside else ""
        raise Refused(
            f"the repository of the work directory {workdir} has uncommitted changes: "
            f"{name_some(changed, most=_SHOWN)}",
            code="not-clean",
            hint="branches with `isolation: worktree` begin at its commit: commit, stash or ignore "
            f"them first (`git -C {quote_path(workdir)} status`); then `uwf thread run {thread}` "
            f"goes on{aside}",
            path=workdir,
            changed=changed,
        )
    prefix = os.path.relpath(os.path.realpath(workdir), place.worktree)
    prefix = "" if prefix == os.curdir else prefix + os.sep
    return SplitOrigin(at, workdir, find_common_dir(place.git_dir), prefix, commit)


def find_inside(place: Place, store: str) -> str:
    """Return the path of *store* below the work tree; "" if it is outside, around, or in `.git`."""
    inside = os.path.relpath(os.path.realpath(store), place.worktree)
    return "" if inside.split(os.sep)[0] in {os.curdir, os.pardir, ".git"} else inside


def find_commit(git: Git, name: str | None) -> str | None:
    if name is None:
        return None
    ran = git.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return None if ran.status else ran.stdout.decode().strip()


def commit_tree(
    git: Git, tree: str, parents: tuple[str, ...], message: str, *, date: str | None = None
) -> str:
    """Write an unsigned commit that no person made, of *date* as git spells it; return its id."""
    named = [word for parent in parents for word in ("-p", parent)]
    dates = {} if date is None else {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    nobody = {f"GIT_{role}_NAME": _NAME for role in _ROLES}
    nobody |= {f"GIT_{role}_EMAIL": _ADDRESS for role in _ROLES}
    git = git._replace(environ={**git.environ, **nobody, **dates})
    return git.ask("commit-tree", "--no-gpg-sign", *named, "-m", message, tree)


def move_ref(git: Git, ref: str, commit: str, *, old: str | None = None) -> None:
    """Let *ref* name *commit*; with *old* only if it named that, or if it is "" nothing.

    An agent may have made the ref lead to a branch of the user, which stays where it is.
    """
    git.ask("update-ref", "--no-deref", ref, commit, *([] if old is None else [old]))


def add_worktree(repository: str, path: str, *, name: str, head: str) -> str:
    """Add a work tree at *path* without files or a git that reads the repository's config."""
    own = os.path.join(repository, "worktrees", name)
    shutil.rmtree(own, ignore_errors=True)
    for folder in (own, path):
        os.makedirs(folder, exist_ok=True)
    named = os.path.join(path, ".git")
    for file, text in {"HEAD": head, "commondir": "../..", "gitdir": named}.items():
        replace_file(os.path.join(own, file), os.fsencode(text) + b"\n", durable=False)
    replace_file(named, b"gitdir: " + os.fsencode(own) + b"\n", durable=False)
    share_sparseness(repository, own)
    return own


# Keep what only a repository inside a worktree has: a checked out submodule, or another.
#
# Of such a repository a tree has only the name of a commit. What is in none of its remotes
# becomes one commit, and is fetched into a repository that outlives the worktree.

# git refuses these dots in the name of a ref.
_BAD_DOT = re.compile(r"(?<![\w-])\.|\.(?![\w-])|\.(?=lock(/|$))")
_LFS = ("lfs", "objects")
_NAMED = ("--pathspec-from-file=-", "--pathspec-file-nul")
_FETCH = (
    *("-c", "protocol.version=2", "-c", "protocol.file.allow=always"),
    *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"),
)


class State(NamedTuple):
    git: Git
    head: str | None
    tree: str
    """Everything in its work tree but what is ignored."""

    known: str | None
    """The commit of it that the worktree had at its beginning."""


def spell_name(path: str) -> str:
    return _BAD_DOT.sub("%2E", quote(os.fsencode(path)).replace("~", "%7E"))


def keep_state(
    environ: Mapping[str, str], worktree: Worktree, state: State, ref: str
) -> tuple[str | None, str | None]:
    """Keep at *ref* what only this repository inside *worktree* has.

    Returns:
        The commit that stands for it, None if nothing is in it; and the git directory that has
        *ref*, None if there was nothing to keep.
    """
    ends = _list_ends(worktree, state)
    has_changed = state.tree != _read_tree(state.git, state.head)
    if not has_changed and not ends:
        return state.head, None
    git_dir = state.git.place.git_dir
    own = os.path.join(worktree.git_dir, "modules") + os.sep
    found = os.path.join(worktree.repository, "modules", git_dir.removeprefix(own))
    repository = found if git_dir.startswith(own) and os.path.isdir(found) else worktree.repository
    to = git_of(environ, repository)
    parents = tuple(dict.fromkeys([*filter(None, [state.head]), *ends]))
    if not has_changed and parents == (state.head,):
        commit = parents[0]
    else:
        commit = _unite(state, parents, to, ref, worktree)
    if not _fetch(to, state.git, commit, ref):
        # A shallow repository gives its commits only to a repository that has the same commits.
        parents = tuple(_cut(state.git, each) for each in parents)
        commit = _unite(state, parents, to, ref, worktree)
        if not _fetch(to, state.git, commit, ref):
            raise ProgramFailed("git", f"could not fetch {commit} from {git_dir}")
    _copy_large_files(git_dir, repository)
    return commit, repository


def _list_ends(worktree: Worktree, state: State) -> list[str]:
    """List the newest commits that neither a remote of the repository has, nor its beginning."""
    git = state.git
    known = ["--not", "--remotes", *filter(None, [find_commit(git, state.known)])]
    if _goes(worktree, find_common_dir(git.place.git_dir)):
        asked = ["--all", *git.ask("stash", "list", "--format=%H").split(), *known]
    elif state.head is not None:
        # Of a worktree within the worktree the branches stay.
        asked = [state.head, *known, "--branches", "--tags"]
    else:
        return []
    lines = [line.split() for line in git.ask("rev-list", "--parents", *asked).split("\n") if line]
    parents = {parent for _, *parents in lines for parent in parents}
    return sorted(commit for commit, *_ in lines if commit not in parents)


def _goes(worktree: Worktree, git_dir: str) -> bool:
    places = (os.path.realpath(worktree.path), worktree.git_dir)
    return f"{git_dir}{os.sep}".startswith(tuple(place + os.sep for place in places))


def _unite(state: State, parents: tuple[str, ...], to: Git, ref: str, worktree: Worktree) -> str:
    """Return a commit of everything in the work tree and *parents*, perhaps the commit of *ref*."""
    made = find_commit(to, ref)
    if made is not None:
        told = to.ask("rev-parse", f"{made}^{{tree}}", f"{made}^@")
        if told.split() == [state.tree, *parents]:
            return made
    return commit_tree(state.git, state.tree, parents, describe_work(worktree))


def _cut(git: Git, commit: str) -> str:
    """Return a commit with what *commit* has, without parents; always the same one."""
    date = git.ask("show", "--no-patch", "--format=%ct +0000", commit)
    message = f"{commit}, of a repository without its history"
    return commit_tree(git, _read_tree(git, commit), (), message, date=date)


def _read_tree(git: Git, commit: str | None) -> str:
    if commit is None:
        return git.ask("hash-object", "-t", "tree", os.devnull)
    return git.ask("rev-parse", f"{commit}^{{tree}}")


def _copy_large_files(git_dir: str, repository: str) -> None:
    """Copy what git-lfs keeps beside the objects; each file is named by its content."""
    kept, to = os.path.join(git_dir, *_LFS), os.path.join(repository, *_LFS)
    if os.path.isdir(kept):
        shutil.copytree(kept, to, dirs_exist_ok=True)


def _fetch(to: Git, origin: Git, commit: str, ref: str) -> bool:
    """Fetch *commit* to *ref*; return whether it is there."""
    if find_commit(to, ref) != commit:
        # The other git, which sends it, reads the config of where it is fetched from.
        with fenced(origin.environ, origin.place) as there:
            to.run(*_FETCH, there["GIT_DIR"], f"+{commit}:{ref}")
    return find_commit(to, ref) == commit


# Write what is in a work tree as a tree; what repositories inside it have is kept as commits.

TellSecret: TypeAlias = Callable[[str, str], str | None]
"""Tells of a file, by its path and status (A: new), why no commit may have it; None: one may."""


class _Place(NamedTuple):
    """A work tree, the outermost one or one inside it."""

    path: str
    git_dir: str
    begun: str | None

    copy: str
    """Where its index is copied to."""

    name: str
    """Its path below the outermost one, and /; empty for that."""

    ref: str
    """What the refs begin with that keep what is inside it."""


def name_index(path: str) -> str:
    """Return the path of the copy of the index of the worktree *path*, while that is written."""
    return path + ".index"


def write_tree(
    environ: Mapping[str, str],
    worktree: Worktree,
    *,
    git_dir: str,
    head: str,
    tip: str,
    tell_secret: TellSecret,
    settings: Kept = NOTHING_KEPT,
) -> tuple[str, tuple[Inner, ...], tuple[str, ...]]:
    """Write everything in a worktree, whose index is in *git_dir*, but what is ignored.

    Secrets are as the commit *tip* has them.

    Returns:
        The tree, the repositories in it that had what was nowhere else: that is kept now; and what
        is told of secrets.
    """
    writer = _Writer(environ, worktree, settings, tell_secret, [], [])
    index, names = name_index(worktree.path), f"refs/uwf/inner/{worktree.thread}/"
    place = _Place(worktree.path, git_dir, worktree.base, index, "", names)
    tree = writer.write(place, head, tip)
    return tree, tuple(sorted(writer.kept)), tuple(writer.left_out)


class _Writer(NamedTuple):
    environ: Mapping[str, str]
    worktree: Worktree
    settings: Kept
    tell_secret: TellSecret
    kept: list[Inner]
    left_out: list[str]

    def write(self, place: _Place, head: str | None, tip: str | None) -> str:
        """Write everything in *place*, whose newest commit is *head*, as ``write_tree``."""
        at = Place(place.git_dir, place.path, place.copy, self.settings)
        git = Git(self.environ, at)
        # Not its own index: a killed agent may have left that locked, or in the middle of a merge.
        own = os.path.join(place.git_dir, "index")
        try:
            remove_file(place.copy + ".lock")
            if place.git_dir != self.worktree.repository and os.path.isfile(own):
                # With its times: by them git knows which files it has to read.
                shutil.copy2(own, place.copy)
            elif head is not None:
                git.ask("read-tree", head)
            links = list_links(self.environ, at)
            words = ("--others", "--exclude-standard", "-z")
            others = git.ask("ls-files", *words).split("\0")
            inner = _list_inner(place, links, others)
            # Without them: git would start another git in each that has a repository.
            _stage(git, {name: "0" * len(commit) for name, commit in links.items()}, mode="0")
            secrets = self._leave_secrets(git, place, others, _read_tree(git, tip))
            left_out = (f":(exclude,top,literal){name}" for name in (*inner, *secrets))
            git.ask("add", "--all", *_NAMED, given=name_all([".", *left_out]))
            here = {name: commit for name, commit in links.items() if _is_folder(place, name)}
            kept = {name: self._keep(place, name) or links.get(name) for name in inner}
            _stage(git, {name: commit for name, commit in (here | kept).items() if commit})
            return git.ask("write-tree")
        finally:
            remove_file(place.copy)

    def _leave_secrets(
        self, git: Git, place: _Place, others: list[str], tree: str
    ) -> dict[str, str]:
        """Let the index have secrets as *tree* has them; return what is told of them, by path."""
        words = ("-z", "--name-status", "--no-renames", "--diff-filter=d")
        rows = iter(git.ask("diff-index", *words, tree).split("\0"))
        listed = {path: "A" for path in others if path and not path.endswith("/")}
        listed |= {path: status for status, path in zip(rows, rows, strict=False)}
        told = {each: self.tell_secret(place.name + each, how) for each, how in listed.items()}
        secrets = {path: line for path, line in told.items() if line is not None}
        if secrets:
            reset = ("--literal-pathspecs", "reset", "--quiet")
            git.ask(*reset, *_NAMED, tree, given=name_all(secrets))
            self.left_out.extend(secrets.values())
        return secrets

    def _keep(self, outer: _Place, name: str) -> str | None:
        path = os.path.join(outer.path, name)
        found = find_inner(self.environ, path)
        if found is None:
            raise ProgramFailed("git", f"takes {path} for no repository")
        git = git_of(self.environ, found.git_dir, worktree=path)
        head = find_commit(git, "HEAD")
        whole, ref = outer.name + name, outer.ref + spell_name(name)
        # What is inside it begins at what it names now.
        copy = outer.copy + ".inner"
        place = _Place(path, found.git_dir, head, copy, whole + "/", ref + "%2F")
        tree = self.write(place, head, head)
        known = _find_link(git_of(self.environ, outer.git_dir), outer.begun, name)
        state = State(git, head, tree, known)
        commit, repository = keep_state(self.environ, self.worktree, state, ref)
        if repository is not None and commit is not None:
            self.kept.append(Inner(whole, ref, commit, repository))
        return commit


def _stage(git: Git, links: Mapping[str, str], *, mode: str = LINK) -> None:
    """Let the index have these commits for repositories inside; with the mode 0 it has nothing."""
    rows = "".join(f"{mode} {commit}\t{name}\0" for name, commit in links.items())
    if rows:
        git.ask("update-index", "--replace", "-z", "--index-info", given=os.fsencode(rows))


def _is_folder(place: _Place, name: str) -> bool:
    path = os.path.join(place.path, name)
    return os.path.isdir(path) and not os.path.islink(path)


def name_all(paths: Iterable[str]) -> bytes:
    return os.fsencode("\0".join(paths))


def _list_inner(place: _Place, links: Iterable[str], others: list[str]) -> list[str]:
    """List the repositories in a work tree, by their paths; not those that are ignored."""
    # Of all else git lists the files, of repositories the folder.
    found = {*links, *(each.rstrip("/") for each in others if each.endswith("/"))}
    return sorted(each for each in found if os.path.lexists(os.path.join(place.path, each, ".git")))


def _find_link(git: Git, commit: str | None, name: str) -> str | None:
    if commit is None:
        return None
    about, _, _ = git.ask("ls-tree", "-z", "--full-tree", commit, "--", name).partition("\t")
    return about.rpartition(" ")[2] if about.startswith(LINK) else None
