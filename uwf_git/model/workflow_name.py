"""Names of workflows and roles.

A valid name is a component of a git ref and a file name (refs are files), never a command's option,
a node hash or a thread id. Source: git-check-ref-format(1); the byte limit is NAME_MAX (255) less
git's ``.lock``.
"""

import unicodedata

from uwf_git.model.names import fold, is_node_hash, is_thread_id

MAX_NAME_LENGTH = 100

_MAX_NAME_BYTES = 240


def check_workflow_name(name: str) -> str | None:
    """Return what keeps *name*, which must be no hash, from naming a workflow, or None."""
    problem = check_name(name)
    if problem:
        return problem
    folded = fold(name)
    if is_node_hash(folded):
        return "it could be a node hash; use a dash or another length"
    if is_thread_id(folded):
        return "it could be a thread id; use a dash or another length"
    return None


def check_name(name: str) -> str | None:
    """Return what keeps *name* from naming a workflow or a role, or None.

    A role's name goes into commit identities, ref-like paths and arguments of commands.
    """
    if not name:
        return "it is empty"
    if len(name) > MAX_NAME_LENGTH or len(name.encode("utf-8", "replace")) > _MAX_NAME_BYTES:
        return f"it is longer than {MAX_NAME_LENGTH} characters or {_MAX_NAME_BYTES} bytes"
    return _check_letters(name) or _check_path(name)


def fold_workflow_name(name: str) -> str:
    """Return the key of all names that differ only in case: on some file systems the same ref."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _check_letters(name: str) -> str | None:
    for position, character in enumerate(name):
        if not _may_stand(character, first=position == 0):
            return (
                f"{character!r} (U+{ord(character):04X}) is not allowed "
                f"{'first' if position == 0 else 'in it'}; "
                "names are letters, digits, dashes, underscores and dots"
            )
    # Two spellings of a name would be two refs, or one ref, depending on the file system.
    if not unicodedata.is_normalized("NFC", name):
        return f"it is not in Unicode NFC; write {unicodedata.normalize('NFC', name)!r}"
    return None


def _may_stand(character: str, *, first: bool) -> bool:
    category = unicodedata.category(character)
    if category[0] == "M":
        return not first
    return category[0] == "L" or category == "Nd" or character in "-_."


def _check_path(name: str) -> str | None:
    if name.startswith("-"):
        return "it starts with a dash, as an option does"
    if name.startswith(".") or name.endswith("."):
        return "it starts or ends with a dot"
    if ".." in name:
        return "it has two dots in a row"
    if name.casefold().endswith(".lock"):
        return "it ends in .lock, which git reserves"
    return None
