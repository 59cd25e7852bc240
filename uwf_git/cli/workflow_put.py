"""Verbs that read workflow files: put, validate; and the judge of drafts."""

import contextlib
import functools
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

import click

from uwf_git.cli.app.parameters import INPUT, Input
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import caller_of
from uwf_git.cli.output.paging import picture_options, print_picture
from uwf_git.cli.output.screen import emit, note, render_text
from uwf_git.cli.session import Session, write_stdout
from uwf_git.cli.workflow import is_file, note_local
from uwf_git.commands.draft import answer_as_validator
from uwf_git.commands.workflow.build import (
    PutWorkflow,
    WorkflowValidation,
    in_file,
    picture_source,
    picture_workflow,
    put_workflow,
    validate_workflow,
)
from uwf_git.commands.workflow.find import UseFound, find_used, find_workflow
from uwf_git.engine.picture.plan import Subject
from uwf_git.errors import Problem, Refused
from uwf_git.model.definition.definition import FindUsed, InvalidWorkflow
from uwf_git.model.text import one_line
from uwf_git.model.yaml_reader import MAX_SOURCE_BYTES, BadYaml
from uwf_git.store.store import NotAStore

_MOST_BYTES = 64 * MAX_SOURCE_BYTES
"""More than a workflow may have, so that its own limit refuses first."""


@verb(
    "uwf workflow put solve-issue.yaml",
    exits={1: "the file is not valid; every problem is listed with its line"},
)
@click.argument("file", type=INPUT)
def put_command(session: Session, file: Input) -> None:
    """Register a workflow from a YAML file.

    Its name is the one in the file. Putting the same file again changes nothing; putting a changed
    one adds a version. Threads that run keep the version they began with.

    `!include PATH` in the file stands for another file below its folder: the value of a YAML or
    JSON file, or the text of any other. PATH is relative to the file that contains it.
    """
    put = put_file(session, file)
    document = put._asdict()
    document["warnings"] = [each.as_document() for each in put.warnings]
    emit(session, document, text=render_unwarned)


def read_source(session: Session, file: Input) -> tuple[bytes, str | None]:
    """Return the content and the path of a workflow file; None: it is standard input."""
    source = file.read_bytes(limit_bytes=_MOST_BYTES)
    return source, None if file.path == "-" else os.path.join(session.cwd, file.path)


def render_unwarned(document: dict[str, Any]) -> str:
    """Return *document* as text, without the warnings, which are on standard error already."""
    shown = {key: value for key, value in document.items() if key != "warnings"}
    return render_text(shown)


def put_file(
    session: Session,
    file: Input,
    *,
    workdir: str | None = None,
    accept: UseFound = lambda _found: None,
) -> PutWorkflow:
    """Register the workflow in *file* if *accept* does not refuse it, and note its warnings.

    Its agents are trusted to run in *workdir*.
    """
    source, path = read_source(session, file)
    store = session.open_store(create=True)
    with naming(file):
        put = put_workflow(
            store, caller_of(session), source, path=path, workdir=workdir, accept=accept
        )
    warnings = in_file(put.warnings, file.name)
    note_warnings(warnings)
    return put._replace(warnings=tuple(warnings))


@contextlib.contextmanager
def naming(file: Input) -> Iterator[None]:
    """Put the name of *file* before what is wrong in it."""
    try:
        yield
    except (BadYaml, InvalidWorkflow) as error:
        error.message = error.message if file.path == "-" else f"{file.name}: {error.message}"
        raise


def note_warnings(warnings: Iterable[Problem]) -> None:
    """Note what may be a mistake in a workflow file, a line each."""
    for each in warnings:
        note(f"warning: {_line(each._asdict())}")


@verb(
    "uwf workflow validate solve-issue.yaml --format text",
    "uwf workflow validate - < solve-issue.yaml | jq -r '.problems[].message'",
    exits={1: "the file is not valid; every problem is listed"},
)
@click.argument("file", type=INPUT)
def validate_command(session: Session, file: Input) -> None:
    """Check a workflow file.

    Every problem is listed with its file and line, those of included files as well. Nothing is
    written, and no store is needed.
    """
    source, path = read_source(session, file)
    validated = validate_workflow(
        source, path=path, shown=file.name, find_used=find_used_here(session)
    )
    note_warnings(validated.warnings)
    emit(session, _document(file.name, validated), text=_text)
    if validated.problems:
        count = len(validated.problems)
        some = "1 problem" if count == 1 else f"{count} problems"
        raise Refused(f"{file.name} has {some}", code="invalid-file", path=file.name, count=count)


def _document(name: str, validated: WorkflowValidation) -> dict[str, Any]:
    document: dict[str, Any] = {"file": name, "valid": validated.built is not None}
    if validated.built is not None:
        document |= {
            "name": validated.built.name,
            "workflow": validated.built.node.hash,
            "includes": list(validated.built.included),
        }
    for what in ("problems", "warnings"):
        document[what] = [
            {"file": each.file, "line": each.line, "path": each.path, "message": each.message}
            for each in getattr(validated, what)
        ]
    return document


def find_used_here(session: Session) -> FindUsed:
    """Return how a file finds the workflows that it uses; the store is opened for the first.

    Without a store they are files of the project or of uwf.
    """

    @functools.cache
    def finder() -> FindUsed:
        store = None
        with contextlib.suppress(NotAStore):
            store = session.open_store()
        return find_used(store, session.cwd)

    return lambda name: finder()(name)  # noqa: PLW0108 (the store is opened when it is called)


def _text(document: dict[str, Any]) -> str:
    if document["valid"]:
        included = len(document["includes"])
        files = f", with {included} included file{'s' * (included > 1)}" if included else ""
        return f"{document['file']}: ok: workflow {document['name']}{files}"
    return "\n".join(one_line(_line(problem)) for problem in document["problems"])


def _line(problem: dict[str, Any]) -> str:
    place = problem["file"]
    if problem["line"] is not None:
        place += f":{problem['line']}"
    return ": ".join(filter(None, (place, problem["path"], problem["message"])))


# `uwf workflow judge`: the agent that plays the validator of the workflow `draft`, never typed.


@verb("uwf workflow judge 01J7K9M2XNPQR5VWBCDF8G3H4T", exits={1: "the thread has no draft"})
@click.argument("thread")
def judge_command(session: Session, thread: str) -> None:
    """Judge the newest draft of a thread, and answer as an agent does."""
    meta, content = answer_as_validator(session.open_store(), session.cwd, thread)
    # An agent's answer is JSON, whatever format is configured.
    write_stdout(json.dumps({"meta": meta, "content": content}) + "\n")


# `uwf workflow graph`.


@verb(
    "uwf workflow graph solve-issue",
    "uwf workflow graph ./solve-issue.yaml --as svg -o solve-issue.svg",
    exits={1: "there is no such workflow, its file is not valid, or FILE cannot be written"},
)
@click.argument("workflow")
@picture_options
def graph_command(session: Session, workflow: str, **how: Any) -> None:
    """Draw a workflow.

    WORKFLOW is a name, the hash of any version, or a file, which is not registered. Conditions are
    numbered in the order in which they are asked. An svg has its own colours, light and dark;
    mermaid is what GitHub and GitLab draw in Markdown.
    """
    print_picture(session, _find(session, workflow), **how)


def _find(session: Session, workflow: str) -> Subject:
    if not is_file(workflow):
        found = find_workflow(session.open_store(create=True), workflow, cwd=session.cwd)
        note_local(found.workflow.name, found.file, found.shadows)
        return picture_workflow(found.workflow, found.closure)
    # Reading YAML costs 70 ms of start-up, which a name does not need.
    source, path = read_source(session, Input(workflow))
    return picture_source(source, path=path, find_used=find_used_here(session))
