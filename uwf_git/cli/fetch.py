"""`uwf fetch` and `uwf clone`."""

from typing import Any

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.caller import without_password_prompt
from uwf_git.cli.session.settings import Session
from uwf_git.commands.remote.fetch import (
    Fetched,
    clone_store,
    divergence_hint,
    fetch_remote,
    refusal_hint,
)
from uwf_git.store.threads.heads import parse_thread_id, resolve_thread

# The result of a fetch as a document and as text, for `uwf fetch` and `uwf clone`.

_EVENTS = ("created", "moved", "archived")


def fetch_document(fetched: Fetched) -> dict[str, Any]:
    """Return the document of a fetch."""
    return {
        "remote": fetched.remote.name,
        **{event: [each.ref for each in fetched.of(event)] for event in _EVENTS},
        "diverged": [
            {
                "ref": each.ref,
                "local": each.local,
                "remote": each.tracked,
                "hint": divergence_hint(each),
            }
            for each in fetched.of("diverged")
        ],
        "refused": [
            {
                "ref": each.ref,
                "commit": each.tracked,
                "problem": each.finding.message if each.finding else None,
                "hint": refusal_hint(each),
            }
            for each in fetched.of("refused")
        ],
        "busy": [
            {"thread": thread, "problem": error.message, "hint": error.hint}
            for thread, error in fetched.busy
        ],
        "ignored": fetched.ignored,
        "unchanged": fetched.unchanged,
    }


def fetch_text(document: dict[str, Any]) -> str:
    """Format that document for people: one line for each thing that changed or failed."""
    lines = [f"{event:<9} {ref}" for event in _EVENTS for ref in document[event]]
    lines += [
        f"diverged  {row['ref']}: here {row['local']}, there {row['remote']}"
        for row in document["diverged"]
    ]
    lines += [f"refused   {row['ref']}: {row['problem']}" for row in document["refused"]]
    lines += [f"busy      {row['problem']}" for row in document["busy"]]
    lines += [f"ignored   {ref}" for ref in document["ignored"]]
    count = document["unchanged"]
    others = f"{count} unchanged" if count or not lines else ""
    return "\n".join([*lines, others] if others else lines)


@verb(
    "uwf fetch",
    "uwf fetch origin 01J7K9M2XNPQR5VWBCDF8G3H4T --format text",
    exits={
        1: "there is no such remote, it cannot be reached, sends too much, or lacks a THREAD",
        4: "a thread is busy, or both sides continued it; the others are fetched",
        5: "a ref is damaged, there or here, and was not adopted; the others are fetched",
    },
)
@click.argument("remote", required=False)
@click.argument("threads", metavar="[THREAD]...", nargs=-1)
def fetch_command(session: Session, remote: str | None, threads: tuple[str, ...]) -> None:
    """Fetch threads and workflows from a remote.

    Everything, or the THREADs that are named, with their branches and the threads around them; of
    one that was never here, give the whole id. What is new or ahead there is checked for integrity
    and adopted, each thread while no process works on it. Nothing here is lost: where both sides
    went on, both are kept and named. Without REMOTE: the only one, else origin.
    """
    store = session.open_store()
    ids = [parse_thread_id(text) or resolve_thread(store, text) for text in threads]
    fetched = fetch_remote(store, without_password_prompt(session), remote, ids)
    emit(session, fetch_document(fetched), text=fetch_text)
    failure = fetched.failure()
    if failure is not None:
        raise failure


@verb(
    "uwf clone git@example.com:team/threads.git",
    "uwf clone https://example.com/threads.git ~/threads.git",
    exits={
        1: "PATH exists, the remote cannot be reached or sends too much; nothing is left behind",
        5: "the remote has damaged refs, which were not adopted; the others are cloned",
    },
)
@click.argument("url")
@click.argument("path", required=False)
def clone_command(session: Session, url: str, path: str | None) -> None:
    """Clone the threads and workflows of another store.

    PATH becomes a bare repository with the threads, the archive and the workflows of URL, and the
    remote origin. Without PATH: the name at the end of URL. To continue a thread of it, say where
    its agents may work (--workdir), and that they may run here (--trust).
    """
    cloned = clone_store(without_password_prompt(session), text_argument(url, "the URL"), path)
    document = {"repo": cloned.path, **fetch_document(cloned.fetched)}
    emit(session, document, text=lambda each: f"repo      {each['repo']}\n{fetch_text(each)}")
    failure = cloned.fetched.failure()
    if failure is not None:
        raise failure
