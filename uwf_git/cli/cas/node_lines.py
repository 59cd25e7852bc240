"""Nodes as lines and documents, for several verbs."""

from typing import Any

from uwf_git.cli.output.json_text import render_json
from uwf_git.commands.cas.read import NodeRow
from uwf_git.model.problem import Problem


def row_document(row: NodeRow) -> dict[str, Any]:
    """Return the document of a row; `problem` is there only if there is one."""
    document = {
        "hash": row.hash,
        "type": row.type,
        "typeName": row.type_name,
        "summary": row.summary,
    }
    return document if row.problem is None else {**document, "problem": row.problem}


def row_words(document: dict[str, Any]) -> str:
    """Return the text of a line after the hash: the type and a summary."""
    if "problem" in document:
        return f"! {document['problem']}"
    return f"{document['typeName'] or document['type']}  {document['summary']}".rstrip()


def problem_document(problem: Problem) -> dict[str, Any]:
    """Return the document of a problem."""
    return {"path": problem.path, "message": problem.message}


def payload_text(payload: Any) -> str:
    """Format a payload for people: text as it is, everything else as JSON on several lines."""
    return payload if isinstance(payload, str) else render_json(payload, pretty=True)
