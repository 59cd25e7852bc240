"""Nodes as lines and documents: what several verbs print in the same way.

Owns: the spelling. Knows nothing of: where the nodes came from.
"""

from typing import Any

from uwf_git.cli.json_text import render_json
from uwf_git.commands.cas_rows import NodeRow
from uwf_git.model.problem import Problem


def row_document(row: NodeRow) -> dict[str, Any]:
    """Give a row as JSON; `problem` is there only if there is one."""
    document = {
        "hash": row.hash,
        "type": row.type,
        "typeName": row.type_name,
        "summary": row.summary,
    }
    return document if row.problem is None else {**document, "problem": row.problem}


def row_words(document: dict[str, Any]) -> str:
    """Give what a line says after the hash: the type, and what tells the node from others."""
    if "problem" in document:
        return f"! {document['problem']}"
    return f"{document['typeName'] or document['type']}  {document['summary']}".rstrip()


def problem_document(problem: Problem) -> dict[str, Any]:
    """Give a problem as JSON."""
    return {"path": problem.path, "message": problem.message}


def payload_text(payload: Any) -> str:
    """Give a payload for people: text as it is, everything else as JSON with its lines."""
    return payload if isinstance(payload, str) else render_json(payload, pretty=True)
