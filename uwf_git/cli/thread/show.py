"""`uwf thread show`."""

from typing import Any

import click

from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.thread_show import show_thread
from uwf_git.model.time_text import render_time

_LONGEST_VALUE = 100


@verb("uwf thread show 01J7K9M2", "uwf thread show 01J7K9M2 --full --format text")
@click.argument("thread")
@click.option("--full", is_flag=True, help="Every step, not only the newest.")
def command(session: Session, thread: str, full: bool) -> None:  # noqa: FBT001 (click's way)
    """Show where a thread stands.

    With the newest step, or with --full every one, oldest first.
    """
    emit(session, show_thread(session.open_store(), thread, full=full), text=_text)


def _text(document: dict[str, Any]) -> str:
    """Tell for people where a thread stands; `uwf thread read` tells what was said in it."""
    steps = document.get("steps") or [document["step"]]
    facts = {
        "thread": document["thread"],
        "workflow": f"{document['workflowName']} {document['workflow']}",
        "status": document["status"],
        "head": document["head"],
        "prompt": document["prompt"],
        "steps": document["depth"],
        "newest": document["said"],
        "started": render_time(document["startTime"]),
        "updated": render_time(document["lastUpdateTime"]),
        "workdir": document["workdir"],
    }
    lines = [f"{name:10}{_short(value)}" for name, value in facts.items() if value is not None]
    if document["error"]:
        lines.append(f"{'error':10}{document['attempts']}. try: {document['error']['message']}")
    for number, step in enumerate(steps, document["depth"] - len(steps) + 1):
        if step is not None:
            lines += ["", f"{number}. {step['role']} {step['hash']}", *_meta(step["meta"])]
    return "\n".join(lines)


def _meta(meta: Any) -> list[str]:
    fields = meta.items() if isinstance(meta, dict) else [("meta", meta)]
    return [f"   {name}: {_short(value)}" for name, value in fields]


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"
