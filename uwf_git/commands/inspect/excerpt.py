"""Texts of a thread as reports show them: keys masked, long ones cut, and how git prints the whole.

An excerpt is a document: ``text``, ``bytes`` (of the whole), ``isCut``, and the git ``command``; or
a ``problem``, if the node cannot be read.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from uwf_git.engine.diff import diff_texts
from uwf_git.engine.masking import change_texts, find_secrets, mask, mask_keys
from uwf_git.errors import UwfError
from uwf_git.model.builtin import TEXT
from uwf_git.model.node import Node
from uwf_git.model.references import find_reference
from uwf_git.store.threads.snapshot import Snapshot

CONTENT_BYTES = 64 * 1024
"""How much is shown of what an agent answered."""

ASIDE_BYTES = 8 * 1024
"""How much is shown of what is beside an answer: prompts, logs, notes."""

_DIFF_BYTES = 4 * 1024
_MARGIN = 16 * 1024
"""More characters than any key has."""

Mask: TypeAlias = Callable[[str], str]


def make_mask(environ: Mapping[str, str]) -> Mask:
    """Return what masks keys as logs and events do: those in *environ*, and all of their shape."""
    secrets = find_secrets(environ)
    return lambda text: mask_keys(mask(text, secrets))


def mask_json(value: Any, mask: Mask) -> Any:
    """Return a JSON value with all its texts masked; a deeply nested value as its JSON text."""
    try:
        return change_texts(value, mask)
    except RecursionError:
        return mask(json.dumps(value, ensure_ascii=False))


def excerpt_node(
    snapshot: Snapshot, ref: Any, mask: Mask, *, most: int = ASIDE_BYTES
) -> dict[str, Any] | None:
    name = find_reference(ref)
    if name is None:
        return None
    try:
        node = snapshot.get_node(name)
    except UwfError as error:
        return {"problem": mask(error.message)}
    return cut_text(str(node.payload), mask, f"git show {place_in_git(snapshot, node)}", most=most)


def excerpt_json(snapshot: Snapshot, node: Node, value: Any, mask: Mask) -> dict[str, Any]:
    """Return a value of *node* as ``value``; if it is too long, an excerpt of its text."""
    masked = mask_json(value, mask)
    text = json.dumps(masked, ensure_ascii=False)
    found = cut_text(text, mask, f"git show {place_in_git(snapshot, node)}", most=CONTENT_BYTES)
    return found if found["isCut"] else {"value": masked}


def excerpt_diff(
    one: tuple[Snapshot, Node], other: tuple[Snapshot, Node], mask: Mask
) -> dict[str, Any] | None:
    told = diff_texts(mask(str(one[1].payload)), mask(str(other[1].payload)))
    if not told:
        return None
    # The names of the two sides stand above.
    _, _, hunks = told.split("\n", 2)
    command = f"git diff {place_in_git(*one)} {place_in_git(*other)}"
    return cut_text(hunks, mask, command, most=_DIFF_BYTES)


def cut_text(text: str, mask: Mask, command: str, *, most: int) -> dict[str, Any]:
    """Return the excerpt of *text*, masked, with at most its first *most* bytes of UTF-8."""
    size = len(text.encode(errors="surrogatepass"))
    if size <= most:
        return {"text": mask(text), "bytes": size, "isCut": False, "command": command}
    # A key that is cut in two is found in neither half: what may be half of a key is not shown.
    shown = mask(text[: most + _MARGIN])
    if len(text) > most + _MARGIN:
        shown = shown[:-_MARGIN]
    cut = shown.encode(errors="replace")[:most].decode(errors="ignore")
    return {"text": cut, "bytes": size, "isCut": True, "command": command}


def place_in_git(snapshot: Snapshot, node: Node) -> str:
    suffix = "md" if node.type == TEXT else "json"
    first, second, rest = node.hash[0], node.hash[1], node.hash[2:]
    return f"{snapshot.commit.oid}:nodes/{first}/{second}/{rest}.{suffix}"
