"""Find workflows: files of the project, registered and shipped names, hashes; and list them."""

import difflib
import os
import stat
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from uwf_git.errors import Problem, Refused, StoreDamaged
from uwf_git.model.builtin import WORKFLOW, walk_closure
from uwf_git.model.definition.definition import FindUsed, UsedWorkflow
from uwf_git.model.names import NodeHash, NotANodeHash, Oid, is_node_hash, parse_node_prefix
from uwf_git.model.node import Node
from uwf_git.model.text import quote_path, render_time
from uwf_git.model.workflow import Workflow, freeze, parse_workflow
from uwf_git.model.workflow_name import check_workflow_name
from uwf_git.model.yaml_reader import MAX_FILE_BYTES, CannotInclude, Includes
from uwf_git.store.durable import list_names as list_folder
from uwf_git.store.lookup import NodeLookup, NoSuchNode, ambiguous_node
from uwf_git.store.nodes import MissingNode
from uwf_git.store.objects.pack_file import ByteCache
from uwf_git.store.store import Store
from uwf_git.store.workflows import (
    Version,
    find_shipped,
    find_version,
    get_version_node,
    list_names,
    list_shipped,
    list_versions,
    no_such_workflow,
)
from uwf_git.surroundings import folders_around

if TYPE_CHECKING:
    from uwf_git.commands.workflow.build import BuiltWorkflow

# Read workflow files below a folder, and nothing outside it.
#
# No link leads out of the folder, even one that is created during the read; only plain files are
# read, so that a pipe cannot block.

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a pipe without a writer would block.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def includes_beside(path: str | None) -> Includes:
    """Return the includes of the workflow file at *path*, below its folder; for None, nothing."""
    if path is None:
        return Includes(_no_folder)
    folder, name = os.path.split(os.path.abspath(path))
    return Includes(lambda inner: read_below(folder, inner), name=name)


def read_below(folder: str, path: str) -> bytes:
    """Return the file at *path* below *folder*, cut one byte above the limit for includes."""
    try:
        top = os.path.realpath(folder)
        real = os.path.realpath(os.path.join(top, path))
        if os.path.commonpath([top, real]) != top:
            raise CannotInclude(f"it is a link that leads out of {folder}")
        return _read(top, os.path.relpath(real, top).split(os.sep))
    except (OSError, ValueError) as error:
        # ValueError: the path holds a NUL.
        raise CannotInclude(getattr(error, "strerror", None) or str(error)) from None


def _read(top: str, parts: list[str]) -> bytes:
    """Read a file by a path without links; open folder by folder, so that no link can be added."""
    folder = os.open(top, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        descriptor = os.open(parts[-1], _FILE, dir_fd=folder)
    finally:
        os.close(folder)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise CannotInclude("it is not a plain file")
        return file.read(MAX_FILE_BYTES + 1)


def _no_folder(_path: str) -> bytes:
    raise CannotInclude(
        "standard input has no folder; name the file instead: `uwf workflow put FILE`"
    )


# Project-local workflows: files in `.workflows/` folders that need no registration.
#
# Nothing above the root of the git repository is read, nor, without a repository, above the current
# directory, and no link leads out of it.

FOLDER = ".workflows"

_RENAME = "change it, or move it elsewhere: every .yaml file there is read as a workflow"

# In order of precedence.
_SUFFIXES = (".yaml", ".yml")


class LocalFile(NamedTuple):
    name: str
    """Its file name without the suffix; the workflow must have the same name."""

    path: str
    root: str
    """The project's root: no link of the file may lead out of it."""

    is_shipped: bool = False
    """It comes with uwf, whose tests have checked its conditions and schemas."""


class BadLocalWorkflow(Refused):
    code = "bad-local-workflow"

    def __init__(
        self,
        file: LocalFile,
        why: str,
        *,
        problems: Sequence[Problem] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(
            f"{file.path}: {why}",
            hint=hint or f"`uwf workflow validate {quote_path(file.path)}` checks it again",
            path=file.path,
            problems=[problem.as_document() for problem in problems],
        )
        self.why = why


def list_local(cwd: str) -> list[LocalFile]:
    """List the workflow files of the project around *cwd* by name; of each name the nearest."""
    nearest: dict[str, LocalFile] = {}
    root, folders = _folders(os.path.abspath(cwd))
    for folder in folders:
        for file in _files(folder, root):
            nearest.setdefault(file.name, file)
    return sorted(nearest.values())


def find_local(cwd: str, name: str) -> LocalFile | None:
    if check_workflow_name(name) is not None:
        return None
    return next((file for file in list_local(cwd) if file.name == name), None)


def build_local(file: LocalFile, find_used: FindUsed | None = None) -> "BuiltWorkflow":
    """Build the workflow in *file*, whose time the nodes get."""
    # Each start of a thread imports this module, and few projects have such files: YAML, JSON
    # Schema and JSONata take 200 ms to import.
    from uwf_git.commands.workflow.build import NotBuilt, build_source, outside_of, problems_of  # noqa: PLC0415 (see above)

    if (problem := check_workflow_name(file.name)) is not None:
        raise BadLocalWorkflow(
            file, f"the file's name cannot be a workflow's: {problem}", hint=_RENAME
        )
    try:
        source = read_below(file.root, os.path.relpath(file.path, file.root))
        written_ms = max(os.stat(file.path).st_mtime_ns // 1_000_000, 0)
        includes, outside = includes_beside(file.path), outside_of(file.path, find_used)
        built = build_source(
            source, includes, outside, timestamp=written_ms, is_checked=file.is_shipped
        )
    except CannotInclude as error:
        raise BadLocalWorkflow(file, error.problem, hint=_RENAME) from None
    except NotBuilt as error:
        problems = problems_of(error, file.path)
        raise BadLocalWorkflow(file, error.message, problems=problems) from error
    if built.name != file.name:
        hint = f"rename the file to {built.name}.yaml, or write `name: {file.name}`"
        raise BadLocalWorkflow(file, f"its `name` is {built.name}", hint=hint)
    return built


def _folders(cwd: str) -> tuple[str, list[str]]:
    """Return the project's root, and the folders that may hold its workflows, nearest first."""
    around = list(folders_around(cwd))
    # Outside of a repository the project is the current directory.
    root = next((each for each in around if os.path.lexists(os.path.join(each, ".git"))), cwd)
    return root, [os.path.join(each, FOLDER) for each in around[: around.index(root) + 1]]


def _files(folder: str, root: str) -> Iterator[LocalFile]:
    names = sorted(list_folder(folder))
    for suffix in _SUFFIXES:
        for name in names:
            stem = name.removesuffix(suffix)
            if stem != name and not name.startswith("."):
                yield LocalFile(
                    unicodedata.normalize("NFC", stem), os.path.join(folder, name), root
                )


# Find a workflow: a file of the project, else a registered or shipped name, else a hash.
#
# A removed name is not found; the hashes of its versions still are.


class WorkflowRemoved(Refused):
    code = "workflow-removed"

    def __init__(self, removal: Version) -> None:
        name, who = removal.name, removal.commit.author.decode(errors="replace")
        super().__init__(
            f"workflow {name} was removed {render_time(removal.commit.time_s * 1000)} by {who}",
            hint=f"`uwf workflow rollback {name}` brings it back, and so does putting it again; "
            f"`uwf workflow history {name}` shows why it was removed",
            workflow=name,
            version=removal.commit.oid,
        )


class FoundWorkflow(NamedTuple):
    workflow: Workflow
    closure: tuple[Node, ...]

    file: str | None = None
    """The file of the project or of uwf that it was read from; None if it is registered."""

    shadows: NodeHash | None = None
    """The registered workflow of the same name that the file hides, if there is one."""


UseFound = Callable[[FoundWorkflow], None]

# What a node of a workflow takes in memory, with what was parsed of it, about.
_NODE_BYTES = 10_000

_VERSIONS: ByteCache[Oid, FoundWorkflow] = ByteCache(8 * 1024 * 1024)


def find_workflow(
    store: Store | None, text: str, *, cwd: str | None = None, users: tuple[str, ...] = ()
) -> FoundWorkflow:
    """Find the workflow that *text* names: a name (its newest version), or a hash.

    Without a *store* there is no registry. With *cwd* the files of the project around it come
    first, and the shipped files after the registry; without *cwd*, only the registry counts.
    *users* are the files of the project that use the workflow, outermost first.
    """
    name = unicodedata.normalize("NFC", text)
    if cwd is not None and (local := find_local(cwd, name)) is not None:
        return _of_local(store, local, cwd, users)
    version = _find_registered(store, name)
    if store and version:
        if version.is_removed:
            raise WorkflowRemoved(version)
        return _of_version(store, version)
    if cwd is not None and (shipped := find_shipped(name)) is not None:
        return _of_local(store, LocalFile(*shipped, is_shipped=True), cwd, users)
    try:
        prefix = parse_node_prefix(text)
    except NotANodeHash:
        raise _no_such(store, text, cwd) from None
    try:
        return _of_hash(store, text, prefix)
    except NoSuchNode:
        # That builds every file of the project, and thus also one of *users*.
        found = None if cwd is None or users else _of_local_hash(store, cwd, prefix)
        if found is None:
            raise _no_such(store, text, cwd) from None
        return found


def find_shipped_workflow(store: Store, name: str) -> FoundWorkflow:
    shipped = find_shipped(name)
    if shipped is None:
        raise _no_such(store, name, None)
    return _of_local(store, LocalFile(*shipped, is_shipped=True), None)


def _find_registered(store: Store | None, name: str) -> Version | None:
    return find_version(store, name) if store is not None and name in list_names(store) else None


def find_shadowed(store: Store | None, name: str) -> NodeHash | None:
    """Return the registered workflow that a file of the project named *name* hides."""
    # A damaged registered workflow is not the workflow that was named.
    with suppress(StoreDamaged):
        version = _find_registered(store, name)
        return None if version is None or version.is_removed else version.workflow
    return None


def find_used(store: Store | None, cwd: str | None, *users: str) -> FindUsed:
    """Return how a file finds the workflows that it uses, as ``find_workflow``, each once."""

    @cache
    def find(name: str) -> UsedWorkflow | str:
        if name in users:
            return f"workflow {name} cannot contain itself: {' uses '.join((*users, name))}"
        try:
            found = find_workflow(store, name, cwd=cwd, users=users)
        except Refused as error:
            return error.message
        return UsedWorkflow(found.workflow.hash, found.closure)

    return find


def _of_local(
    store: Store | None, local: LocalFile, cwd: str | None, users: tuple[str, ...] = ()
) -> FoundWorkflow:
    built = build_local(local, find_used(store, cwd, *users, local.name))
    return FoundWorkflow(
        parse_workflow(built.node),
        (built.node, *built.closure),
        local.path,
        find_shadowed(store, local.name),
    )


def _of_local_hash(store: Store | None, cwd: str, prefix: str) -> FoundWorkflow | None:
    """Return the workflow of the project whose hash begins so: `workflow list` shows it."""
    for local in list_local(cwd):
        with suppress(BadLocalWorkflow):
            found = _of_local(store, local, cwd)
            if found.workflow.hash.startswith(prefix):
                return found
    return None


def _of_hash(store: Store | None, text: str, prefix: str) -> FoundWorkflow:
    if store is None:
        raise NoSuchNode(prefix)
    if is_node_hash(prefix):
        for name in list_names(store):
            # Most threads begin with the newest version of a name; a damaged one is another's.
            with suppress(StoreDamaged):
                version = find_version(store, name)
                if version is not None and version.workflow == prefix:
                    return _of_version(store, version)
    else:
        versions = {
            version.workflow: version
            for version in list_versions(store)
            if version.workflow.startswith(prefix)
        }
        if len(versions) == 1:
            return _of_version(store, versions.popitem()[1])
        if versions:
            raise ambiguous_node(text, sorted(versions))
    lookup = NodeLookup(store)
    node = lookup.get(lookup.resolve(prefix))
    if node.type != WORKFLOW:
        raise _no_such(store, text, None)

    def get_part(name: NodeHash) -> Node:
        part = lookup.find(name)
        if part is None:
            raise MissingNode(name)
        return part

    return _found(node.hash, get_part)


def _of_version(store: Store, version: Version) -> FoundWorkflow:
    """Return the workflow of a version, read once in a process: a commit never changes."""
    found = _VERSIONS.get(version.commit.oid)
    if found is None:
        read = _found(version.workflow, lambda name: get_version_node(store, version, name))
        closure = tuple(each._replace(payload=freeze(each.payload)) for each in read.closure)
        found = FoundWorkflow(parse_workflow(closure[0]), closure)
        _VERSIONS.put(version.commit.oid, found, _NODE_BYTES * len(closure))
    return found


def _found(root: NodeHash, get_node: Callable[[NodeHash], Node]) -> FoundWorkflow:
    closure = tuple(walk_closure([root], get_node))
    return FoundWorkflow(parse_workflow(closure[0]), closure)


def _no_such(store: Store | None, text: str, cwd: str | None) -> Refused:
    local = [] if cwd is None else [file.name for file in list_local(cwd)]
    shipped = [] if cwd is None else [file.name for file in list_shipped()]
    known = dict.fromkeys([*local, *([] if store is None else list_names(store)), *shipped])
    # A listed file may have a name that no workflow can have.
    known.pop(text, None)
    error = no_such_workflow(text, difflib.get_close_matches(text, known, n=3))
    if store is None:
        error.message += ": no store is here"
    return error


# `uwf workflow list`: the files of the project, then the registered workflows, then the shipped.
#
# A damaged workflow is one row that says so.


def list_workflows(
    store: Store, *, cwd: str | None = None, limit: int | None = None
) -> list[dict[str, Any]]:
    """List the workflows of the project around *cwd*, then the registered others."""
    local = [] if cwd is None else list_local(cwd)
    here = {file.name for file in local}
    registered = [_row(store, name) for name in list_names(store) if name not in here]
    rows = [row for row in registered if row is not None]
    rows.sort(key=lambda row: (-int(row.get("lastUpdateTime", 0)), row["name"]))
    return [*(_local_row(store, cwd, file) for file in local), *rows][:limit]


def list_all_workflows(
    store: Store, *, cwd: str | None = None, limit: int | None = None
) -> list[dict[str, Any]]:
    """List as ``list_workflows``, then the shipped workflows whose names nobody else had."""
    rows = list_workflows(store, cwd=cwd)
    taken = {*(row["name"] for row in rows), *list_names(store)}
    shipped = [
        LocalFile(*file, is_shipped=True) for file in list_shipped() if file.name not in taken
    ]
    return [*rows, *(_local_row(store, cwd, file) for file in shipped)][:limit]


def _row(store: Store, name: str) -> dict[str, Any] | None:
    try:
        version = find_version(store, name)
        if version is None:
            return {"name": name, "error": "it was removed while the list was made"}
        if version.is_removed:
            return None
        node = get_version_node(store, version, version.workflow)
        return _view(name, node, version.commit.time_s * 1000)
    except StoreDamaged as error:
        return {"name": name, "error": error.message}


def _view(name: str, node: Node, updated_ms: int) -> dict[str, Any]:
    workflow = parse_workflow(node)
    return {
        "name": name,
        "workflow": workflow.hash,
        "description": workflow.description,
        "roles": list(workflow.roles),
        "lastUpdateTime": updated_ms,
    }


def _local_row(store: Store, cwd: str | None, file: LocalFile) -> dict[str, Any]:
    try:
        node = build_local(file, find_used(store, cwd, file.name)).node
        row = _view(file.name, node, node.timestamp)
    except BadLocalWorkflow as error:
        row = {"name": file.name, "error": error.why}
    row["file"] = file.path
    shadowed = find_shadowed(store, file.name)
    return row if shadowed is None else {**row, "shadows": shadowed}
