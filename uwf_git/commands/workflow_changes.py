"""Changes: what one version of a workflow says that the one before did not.

Owns: the comparison, in the words of the workflow file. Knows nothing of: commits, who did it.
Always true: two versions whose files differ have a change, if only that of a file.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from uwf_git.store.workflow_tree import SOURCE_FILE, Source

Kind = Literal["added", "removed", "changed"]

# Their items are compared one by one; everything else is one thing.
_BY_NAME = ("roles", "transitions", "agentOverrides", "initialState")


class Change(NamedTuple):
    """One thing that differs."""

    kind: Kind
    path: str
    """``roles.checker.systemPrompt``; of a file ``file prompts/check.md``."""


class Contents(NamedTuple):
    """What a version holds."""

    described: Mapping[str, Any]
    """As ``describe_workflow`` gives it."""

    source: Source


def compare_versions(old: Contents, new: Contents) -> list[Change]:
    """Give what *new* has that *old* had not, and the other way round."""
    found = [*_compare_parts(_parts(old.described), _parts(new.described))]
    found += _compare_files(old.source.included, new.source.included)
    if not found and old.source.workflow != new.source.workflow:
        # Comments, layout, the order of keys: the nodes are the same.
        found.append(Change("changed", f"file {SOURCE_FILE}"))
    return found


def _parts(described: Mapping[str, Any]) -> dict[str, Any]:
    """Give what can differ, the moderator by position and without what follows from the rest."""
    parts = {key: value for key, value in described.items() if key not in {"workflow", "moderator"}}
    parts["transitions"] = {
        row["from"]: row["transitions"] for row in described["moderator"]["graph"]
    }
    return parts


def _compare_parts(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    for key in dict.fromkeys([*old, *new]):
        if key not in _BY_NAME:
            yield from _compare_values(key, (old, new), key)
            continue
        before, after = old.get(key, {}), new.get(key, {})
        for name in dict.fromkeys([*before, *after]):
            yield from _compare_item(f"{key}.{name}", before, after, name)


def _compare_item(
    path: str, before: Mapping[str, Any], after: Mapping[str, Any], name: str
) -> Iterator[Change]:
    """Compare one role, or one position: of a role that both have, each of its fields."""
    if not (path.startswith("roles.") and name in before and name in after):
        yield from _compare_values(path, (before, after), name)
        return
    old, new = before[name], after[name]
    for field in dict.fromkeys([*old, *new]):
        if field != "hash":
            yield from _compare_values(f"{path}.{field}", (old, new), field)


def _compare_values(
    path: str, sides: tuple[Mapping[str, Any], Mapping[str, Any]], key: str
) -> Iterator[Change]:
    old, new = sides
    if key not in old:
        yield Change("added", path)
    elif key not in new:
        yield Change("removed", path)
    elif old[key] != new[key]:
        yield Change("changed", path)


def _compare_files(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Iterator[Change]:
    for path in sorted({*old, *new}):
        yield from _compare_values(f"file {path}", (old, new), path)
