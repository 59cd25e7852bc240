"""The workflow registry: refs/workflows/<name>, one commit a version."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from dulwich.objects import Blob, ObjectID, ShaFile, Tree

from uwf_git.debug_log import debug
from uwf_git.errors import Conflict, Refused
from uwf_git.model.names import NodeHash, Oid, is_node_hash
from uwf_git.model.node import Node
from uwf_git.model.text import quote_path
from uwf_git.model.thread import FORMAT
from uwf_git.model.workflow import describe_check
from uwf_git.store.nodes import FILE_MODE, NODES, TREE_MODE, add_nodes, get_node
from uwf_git.store.objects.commit import (
    BadMessage,
    CommitDraft,
    CommitView,
    Signing,
    build_message,
    damaged_commit,
    find_entry,
    is_descendant,
    parse_trailers,
    read_commit,
    read_commit_file,
    write_commit,
)
from uwf_git.store.objects.objects import ObjectStore, get_blob, get_tree
from uwf_git.store.store import Store

# The tree of a workflow commit: source files, Workflow node, closure.
#
# Each file lies byte for byte at the path by which the workflow file includes it, so a checkout
# of the tree can be put again. Format: FORMAT.md, "The tree of a workflow commit".

SOURCE_FILE = "workflow.yaml"
HEAD_FILE = "head.json"

_OWN = frozenset(name.encode() for name in (SOURCE_FILE, HEAD_FILE, NODES))


class SourceFiles(NamedTuple):
    workflow: bytes
    included: Mapping[str, bytes] = MappingProxyType({})
    """By path relative to the workflow file."""


def build_tree(
    source: SourceFiles, *, head: ObjectID, nodes: ObjectID
) -> tuple[Tree, list[ShaFile]]:
    top: dict[str, bytes] = {SOURCE_FILE: source.workflow, **source.included}
    tree, objects = _build_folder({tuple(path.split("/")): file for path, file in top.items()})
    tree[HEAD_FILE.encode()] = (FILE_MODE, head)
    tree[NODES.encode()] = (TREE_MODE, nodes)
    return tree, objects


def _build_folder(files: Mapping[tuple[str, ...], bytes]) -> tuple[Tree, list[ShaFile]]:
    tree, objects = Tree(), list[ShaFile]()
    folders: dict[str, dict[tuple[str, ...], bytes]] = {}
    for (first, *rest), content in files.items():
        if rest:
            folders.setdefault(first, {})[tuple(rest)] = content
            continue
        blob = Blob.from_string(content)
        tree[first.encode()] = (FILE_MODE, blob.id)
        objects.append(blob)
    for name, inner in folders.items():
        folder, below = _build_folder(inner)
        tree[name.encode()] = (TREE_MODE, folder.id)
        objects += [*below, folder]
    return tree, objects


def read_sources(objects: ObjectStore, commit: CommitView) -> SourceFiles:
    """Return the files that a version was put from, byte for byte."""
    top = get_tree(objects, commit.tree)
    included = {
        path: content
        for entry in top.items()
        if entry.path not in _OWN
        for path, content in _files(objects, (entry.mode, entry.sha), _name(entry.path))
    }
    return SourceFiles(read_commit_file(objects, commit, SOURCE_FILE), included)


def _files(
    objects: ObjectStore, entry: tuple[int, ObjectID], path: str
) -> Iterator[tuple[str, bytes]]:
    mode, oid = entry
    if mode != TREE_MODE:
        yield path, get_blob(objects, oid)
        return
    for inner in get_tree(objects, oid).items():
        yield from _files(objects, (inner.mode, inner.sha), f"{path}/{_name(inner.path)}")


def _name(raw: bytes) -> str:
    # Other programs may write any name; `uwf verify` reports it.
    return raw.decode(errors="surrogateescape")


# The workflow registry: one ref a name below refs/workflows/, one commit a version.
#
# A removal and a rollback are new commits; the versions that they undo stay readable. Format:
# FORMAT.md, "The tree of a workflow commit".

WORKFLOWS = "refs/workflows/"

PUT, ROLLBACK, REMOVE = "put", "rollback", "remove"


def no_such_workflow(text: str, near: list[str]) -> Refused:
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    shown = text[:100] if text and text.isprintable() else repr(text[:100])
    file = quote_path(text) if text.endswith((".yaml", ".yml")) else "FILE"
    return Refused(
        f"there is no workflow {shown}",
        code="no-such-workflow",
        hint=f"{meant}`uwf workflow list` shows yours; `uwf workflow put {file}` adds one",
        workflow=text[:100],
    )


class Version(NamedTuple):
    name: str
    commit: CommitView
    workflow: NodeHash
    """Its Workflow node; for a removal the node of the removed version."""

    event: str = PUT
    """``put``, ``rollback`` or ``remove``."""

    @property
    def is_removed(self) -> bool:
        return self.event == REMOVE


def list_names(store: Store) -> list[str]:
    return store.refs.names(WORKFLOWS)


def find_version(store: Store, name: str) -> Version | None:
    oid = store.refs.find(WORKFLOWS + name)
    return None if oid is None else _read_version(store, name, oid)


def _read_version(store: Store, name: str, oid: Oid) -> Version:
    commit = read_commit(store.objects, oid)
    try:
        trailers = parse_trailers(commit.message)
    except BadMessage as error:
        raise error.of_commit(oid, WORKFLOWS + name, path=store.path) from error
    workflow = trailers.get("Uwf-Workflow", "")
    if not is_node_hash(workflow):
        raise damaged_commit(oid, "names no workflow")
    return Version(name, commit, NodeHash(workflow), trailers.get("Uwf-Event", PUT))


def list_versions(store: Store) -> Iterator[Version]:
    """Yield every version of every workflow, by name, the newest first."""
    for name in list_names(store):
        yield from walk_versions(store, find_version(store, name))


def walk_versions(store: Store, newest: Version | None) -> Iterator[Version]:
    """Yield *newest* and the versions before it, down to the first."""
    version = newest
    while version is not None:
        yield version
        parents = version.commit.parents
        version = _read_version(store, version.name, parents[0]) if parents else None


def walk_own_versions(store: Store, name: str, tip: Oid, other: Oid) -> Iterator[Version]:
    """Yield the versions of a workflow at *tip* that it does not have at *other*."""
    for version in walk_versions(store, _read_version(store, name, tip)):
        if is_descendant(store.objects, other, version.commit.oid):
            return
        yield version


def get_version_node(store: Store, version: Version, name: NodeHash) -> Node:
    return get_node(store.objects, find_entry(store.objects, version.commit, NODES), name)


def add_version(
    store: Store,
    seen: Version | None,
    *,
    added: tuple[str, Node, Iterable[Node]],
    source: SourceFiles,
    signing: Signing,
) -> Version:
    """Add a version after the version *seen*; *added* is name, Workflow node, closure."""
    name, workflow, closure = added
    growth = add_nodes(store.objects, None, [workflow, *closure])
    tree, files = build_tree(source, head=growth.blobs[workflow.hash], nodes=growth.nodes)
    draft = CommitDraft(
        tree=tree,
        parents=() if seen is None else (seen.commit,),
        message=build_version_message(name, PUT, workflow.hash),
        objects=[*growth.objects, *files],
    )
    return _write(store, name, seen, draft, signing)


def restore_version(
    store: Store, seen: Version, old: Version, *, reason: str, signing: Signing
) -> Version:
    """Add a version after the version *seen* with the content of *old*, an earlier one."""
    return _write_again(store, seen, old, ROLLBACK, reason, signing)


def remove_version(store: Store, seen: Version, *, reason: str, signing: Signing) -> Version:
    """Add a removal after the version *seen*, with the same tree."""
    return _write_again(store, seen, seen, REMOVE, reason, signing)


def _write_again(
    store: Store, seen: Version, old: Version, event: str, reason: str, signing: Signing
) -> Version:
    """Add a version after the version *seen*, with the tree of *old*."""
    tree: Tree = get_tree(store.objects, old.commit.tree)
    message = build_version_message(seen.name, event, old.workflow, reason)
    draft = CommitDraft(tree=tree, parents=(seen.commit,), message=message, objects=[])
    return _write(store, seen.name, seen, draft, signing)


def build_version_message(name: str, event: str, workflow: NodeHash, reason: str = "") -> bytes:
    said = {PUT: "put", ROLLBACK: "rollback to", REMOVE: "removed"}[event]
    trailers = [
        ("Uwf-Event", event),
        ("Uwf-Workflow", workflow),
        ("Uwf-Workflow-Name", name),
        ("Uwf-Format", str(FORMAT)),
    ]
    return build_message(name, f"{said} {workflow}", body=reason, trailers=trailers)


def _write(
    store: Store, name: str, seen: Version | None, draft: CommitDraft, signing: Signing
) -> Version:
    oid = write_commit(store.objects, draft, signing)
    if not store.refs.advance(WORKFLOWS + name, seen=seen and seen.commit.oid, to=oid):
        debug("2DNYNQN0", "version lost", workflow=name, commit=oid)
        raise Conflict(
            f"workflow {name} got another version meanwhile",
            code="workflow-moved",
            hint="see it with `uwf workflow history`, then try again",
            workflow=name,
        )
    debug("KRFN02T6", "version put", workflow=name, commit=oid)
    return _read_version(store, name, oid)


# The workflows of the installed package, which are found by name after all others.

_FOLDER = Path(__file__).parents[1] / "workflows"


class ShippedFile(NamedTuple):
    name: str
    path: str
    root: str


def list_shipped() -> list[ShippedFile]:
    return [ShippedFile(p.stem, str(p), str(_FOLDER)) for p in sorted(_FOLDER.glob("*.yaml"))]


def find_shipped(name: str) -> ShippedFile | None:
    return next((file for file in list_shipped() if file.name == name), None)


def is_shipped_agent(name: str, agent: dict[str, Any]) -> bool:
    """Check whether the installed file of *name* names this agent, perhaps as a check."""
    file = find_shipped(name)
    if file is None:
        return False
    # Reading YAML costs 70 ms of start-up, which few threads need.
    from uwf_git.model.definition.source import read_unchecked  # noqa: PLC0415 (see above)

    # A test checks the shipped files.
    definition = read_unchecked(Path(file.path).read_bytes())
    default = definition.default_agent
    named = [*definition.agent_overrides.values(), *([] if default is None else [default])]
    checks = [describe_check(each) for role in definition.roles.values() for each in role.checks]
    return agent in checks or any(each.as_payload() == agent for each in named)
