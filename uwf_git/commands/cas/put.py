"""Put nodes by hand: check payloads, store them, bootstrap a store."""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from uwf_git.agents.limited_fork import DEFAULT, RunLimits, run_limited
from uwf_git.commands.admin.init import Initialized, init_store
from uwf_git.commands.caller import Caller
from uwf_git.commands.cas.read import BUILTIN_TYPES, get_schema, resolve_type
from uwf_git.errors import Refused, StoreDamaged, name_some
from uwf_git.model.builtin import BUILTIN, META
from uwf_git.model.canonical import encode
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node, build_node, build_self_typed_node
from uwf_git.model.plain_schema import is_plainly_valid
from uwf_git.model.problem import Problem
from uwf_git.store.lookup.cas_nodes import NODES_REF, put_nodes
from uwf_git.store.lookup.lookup import NodeLookup
from uwf_git.store.lookup.roots import open_root
from uwf_git.store.nodes.tree import node_collision
from uwf_git.store.store import Store

# Check payloads against their types.
#
# A schema that is not built in is only evaluated in a limited child process: a pattern in it may
# run forever.

_MIB = 1024 * 1024

_Found = list[tuple[str, str]]


def _invalid_payload(type_node: Node, problems: list[Problem]) -> Refused:
    first = problems[0]
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems, the first"
    problem = f"{count} at {first.path or 'the top'}: {first.message}"
    if type_node.is_self_typed:
        message = f"this is not a JSON Schema: {problem}"
        hint = "schemas are JSON Schema 2020-12: https://json-schema.org/draft/2020-12"
    else:
        message = f"the payload breaks schema {type_node.hash}: {problem}"
        hint = f"`json-cas schema get {type_node.hash}` shows the schema"
    return Refused(
        message,
        code="invalid-payload",
        hint=hint,
        type=type_node.hash,
        problems=[{"path": each.path, "message": each.message} for each in problems],
    )


def check_payload(type_node: Node, payload: Any) -> None:
    problems = find_problems(type_node, payload)
    if problems:
        raise _invalid_payload(type_node, problems)


def find_problems(type_node: Node, payload: Any) -> list[Problem]:
    """List where *payload* does not fit *type_node*; if that is the meta-schema, as a schema."""
    schema = type_node.payload
    if not type_node.is_self_typed and _is_plain(schema, payload):
        return []
    # jsonschema takes 90 ms to import, which a plainly valid payload saves.
    from uwf_git.model.schema_check import check_schema, check_value  # noqa: PLC0415 (see above)

    def check() -> _Found:
        found = check_schema(payload) if type_node.is_self_typed else []
        return [(each.path, each.message) for each in found or check_value(schema, payload)]

    # The payload of a meta-schema is a foreign schema; checking it compiles its patterns.
    is_ours = type_node.hash in BUILTIN and not type_node.is_self_typed
    found = check() if is_ours else _check_limited(check, size_bytes=len(encode([schema, payload])))
    return [Problem(path, message) for path, message in found]


def _is_plain(schema: Any, payload: Any) -> bool:
    try:
        return is_plainly_valid(schema, payload)
    except RecursionError:
        return False


def _check_limited(check: Callable[[], _Found], *, size_bytes: int) -> _Found:
    # 13 MB of small records take 6 s on a slow machine; a small payload gets little time.
    seconds = 1 + size_bytes // _MIB
    memory_bytes = DEFAULT.memory_bytes + 64 * size_bytes
    limits = RunLimits(memory_bytes=memory_bytes, cpu_s=seconds, wall_s=2.0 * seconds)
    found: _Found = run_limited(check, limits=limits, what="the check against the schema")
    return found


# `json-cas put`: a node goes to refs/cas/nodes with all nodes that it reaches.
#
# refs/cas/nodes is closed under references, so that git's gc keeps the nodes and a push of that
# ref shares them. A node that it has is therefore not walked again.


def keep_node(store: Store, caller: Caller, lookup: NodeLookup, node: Node) -> None:
    """Put *node* and its closure at refs/cas/nodes; nodes that are there stay as they are."""
    by_hand = open_root(store, NODES_REF)
    closure: dict[NodeHash, Node] = {}
    missing: dict[NodeHash, NodeHash] = {}
    waiting = deque([node])
    while waiting:
        each = waiting.popleft()
        if each.hash in closure:
            continue
        closure[each.hash] = each
        for target in lookup.list_references(each):
            if target in BUILTIN or (by_hand is not None and by_hand.lists(target)):
                continue
            found = lookup.find(target)
            if found is None:
                missing.setdefault(target, each.hash)
            else:
                waiting.append(found)
    if missing:
        named = [
            name if holder == node.hash else f"{name} (from {holder})"
            for name, holder in missing.items()
        ]
        what = "a node that is" if len(named) == 1 else f"{len(named)} nodes that are"
        raise Refused(
            f"node {node.hash} refers to {what} not in this store: {name_some(named)}",
            code="dangling-references",
            hint="put these nodes first",
            node=node.hash,
            missing=list(missing),
        )
    put_nodes(store, list(closure.values()), caller.signing(store))


class PutNode(NamedTuple):
    hash: NodeHash
    new: bool
    """Whether no ref held it before."""


def put_payload(store: Store, caller: Caller, type_text: str | None, payload: Any) -> PutNode:
    """Store *payload* as a node of the type *type_text*, once; None makes a meta-schema."""
    lookup = NodeLookup(store)
    now_ms = caller.now_ms()
    if type_text is None:
        node = type_node = build_self_typed_node(payload, timestamp=now_ms)
    else:
        type_node = get_schema(lookup, resolve_type(lookup, type_text))
        node = build_node(type_node.hash, payload, timestamp=now_ms)
    check_payload(type_node, node.payload)
    present = _find_same(lookup, node)
    keep_node(store, caller, lookup, present or node)
    return PutNode(node.hash, new=present is None)


def _find_same(lookup: NodeLookup, node: Node) -> Node | None:
    try:
        present = lookup.find(node.hash)
    except StoreDamaged:
        # All copies in the store are damaged; the new one is whole.
        return None
    if present is not None and (present.type, present.payload) != (node.type, node.payload):
        raise node_collision(node.hash)
    return present


# `json-cas bootstrap` and `init`: put the built-in schemas into a store.


class Bootstrapped(NamedTuple):
    meta: NodeHash

    schemas: dict[str, NodeHash]


def bootstrap_store(store: Store, caller: Caller) -> Bootstrapped:
    """Put the built-in schemas at refs/cas/nodes, readable before there is any thread."""
    put_nodes(store, [], caller.signing(store))
    return Bootstrapped(META, dict(BUILTIN_TYPES))


def init_cas(path: str | None, caller: Caller) -> Initialized:
    made = init_store(path, caller.cwd, caller.environ)
    bootstrap_store(made.store, caller)
    return made
