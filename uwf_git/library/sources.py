"""Workflow sources: tell a workflow's name from a file, YAML text or a definition in Python."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from uwf_git.errors import BadUsage, Refused
from uwf_git.model.canonical import canonical
from uwf_git.model.yaml.render import render_yaml

WorkflowSource = str | bytes | os.PathLike[str] | Mapping[str, Any]
"""YAML (bytes, or a text of several lines), the path of such a file, or a definition as a dict.

A text of one line is a path if it holds a slash or ends in .yaml or .yml, as on the command line.
"""

AppendedSource = WorkflowSource | Sequence[Mapping[str, Any]]
"""What can be appended: the same, or a list of the nodes of a flow."""

_SUFFIXES = (".yaml", ".yml")

# Far more than a workflow may have, so that the workflow reader refuses a larger one.
_MOST_BYTES = 2**26


class SourceText(NamedTuple):
    """A workflow in YAML."""

    text: bytes
    path: str | None
    """The path of its file, for its includes; None: it can include nothing."""


def find_source(given: AppendedSource, cwd: str) -> SourceText | None:
    """Read the workflow *given*; None if it is a name or a hash.

    Raises:
        NotCanonical: a definition holds a value that JSON lacks.
        Refused: the file cannot be read.
    """
    if isinstance(given, bytes):
        return SourceText(given, None)
    if isinstance(given, Mapping):
        return SourceText(render_yaml(canonical(dict(given))).encode(), None)
    if not isinstance(given, str | os.PathLike):
        return SourceText(render_yaml(canonical({"nodes": list(given)})).encode(), None)
    text = os.fspath(given)
    if isinstance(given, str):
        if "\n" in text:
            return SourceText(text.encode(errors="surrogatepass"), None)
        if os.sep not in text and not text.endswith(_SUFFIXES):
            return None
    path = os.path.join(cwd, text)
    try:
        with open(path, "rb") as file:
            return SourceText(file.read(_MOST_BYTES), path)
    except OSError as error:
        raise Refused(
            f"{path[:300]!r} cannot be read: {(error.strerror or str(error))}",
            code="unreadable-source",
            hint="a relative path begins at the runtime's cwd; `ls -l` shows who may read it",
            path=path,
        ) from error


def read_source(given: AppendedSource, cwd: str) -> SourceText:
    """Read the workflow *given*, as ``find_source``.

    Raises:
        BadUsage: it is a name.
    """
    source = find_source(given, cwd)
    if source is None:
        raise BadUsage(
            f"{str(given)[:60]!r} is neither YAML nor the path of a file",
            code="not-a-source",
            hint="a path holds a slash or ends in .yaml; YAML has several lines, or is bytes",
        )
    return source
