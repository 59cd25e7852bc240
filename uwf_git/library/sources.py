"""Workflow sources: what a caller may hand over in the place of a workflow's name.

Owns: telling a name from a file, from YAML, from a definition as Python has it.
Knows nothing of: what is in it.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.errors import BadUsage
from uwf_git.model.canonical import canonical
from uwf_git.model.yaml_render import render_yaml

WorkflowSource = str | bytes | os.PathLike[str] | Mapping[str, Any]
"""YAML (bytes, or a text of several lines), the path of such a file, or a definition as a dict.

A text of one line is a path if it holds a slash or ends in .yaml or .yml, as on the command line.
"""

_SUFFIXES = (".yaml", ".yml")

# Far more than a workflow may have, so that the refusal is the workflow's own.
_MOST_BYTES = 2**26


class NotASource(BadUsage):
    """A name was given where only the workflow itself will do."""

    code = "not-a-source"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text[:60]!r} is neither YAML nor the path of a file",
            hint="a path holds a slash or ends in .yaml; YAML has several lines, or is bytes",
        )


class Source(NamedTuple):
    """A workflow in YAML."""

    text: bytes
    path: str | None
    """Where it lies, for what it includes; None: it can include nothing."""


def find_source(given: WorkflowSource, cwd: str) -> Source | None:
    """Read what was handed over; None if it is the name of a workflow, or a hash.

    Raises:
        NotCanonical: a definition holds what JSON does not have.
        OSError: the file cannot be read.
    """
    if isinstance(given, bytes):
        return Source(given, None)
    if isinstance(given, Mapping):
        return Source(render_yaml(canonical(dict(given))).encode(), None)
    text = os.fspath(given)
    if isinstance(given, str):
        if "\n" in text:
            return Source(text.encode(errors="surrogatepass"), None)
        if os.sep not in text and not text.endswith(_SUFFIXES):
            return None
    path = os.path.join(cwd, text)
    with open(path, "rb") as file:
        return Source(file.read(_MOST_BYTES), path)


def read_source(given: WorkflowSource, cwd: str) -> Source:
    """Read what was handed over, which must be more than a name.

    Raises:
        NotASource: it is a name.
        As ``find_source``.
    """
    source = find_source(given, cwd)
    if source is None:
        raise NotASource(str(given))
    return source
