"""`uwf push`."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.caller import without_password_prompt
from uwf_git.cli.session.settings import Session
from uwf_git.commands.remote.push import Pushed, push_remote


@verb(
    "uwf push",
    "uwf push origin 01J7K9M2 --format text",
    exits={
        1: "there is no such remote, it cannot be reached, or it refused something",
        4: "the remote has something newer; fetch first. The others are pushed",
        5: "a thread is damaged here; the others are pushed",
    },
)
@click.argument("remote", required=False)
@click.argument("threads", metavar="[THREAD]...", nargs=-1)
def command(session: Session, remote: str | None, threads: tuple[str, ...]) -> None:
    """Push threads and workflows to a remote.

    Everything, or the THREADs that are named; one pushed thread is complete there. Only
    fast-forwards: what the remote has and this store does not know is not changed. A thread that
    was archived here is moved to the archive there. Without REMOTE: the only one, else origin.
    """
    pushed = push_remote(session.open_store(), without_password_prompt(session), remote, threads)
    emit(session, _document(pushed), text=_text)
    failure = pushed.failure()
    if failure is not None:
        raise failure


def _document(pushed: Pushed) -> dict[str, Any]:
    rejected: list[dict[str, Any]] = [
        {"ref": each.unit.name, "status": "refused", "problem": each.reason, "said": each.output}
        for each in pushed.refused
    ]
    rejected += [
        {"ref": left.ref, "status": left.standing, "local": left.here, "remote": left.there}
        for left in pushed.standing("fetch-first", "diverged")
    ]
    rejected += [
        {"ref": ref, "status": "damaged", "problem": problem} for ref, problem in pushed.damaged
    ]
    return {
        "remote": pushed.remote.name,
        "pushed": [
            {"ref": ref, "from": before, "to": after, "status": status}
            for ref, before, after, status in pushed.pushed
        ],
        "rejected": rejected,
        "behind": [left.ref for left in pushed.standing("behind")],
        "unchanged": len(pushed.standing("unchanged")),
    }


def _text(document: dict[str, Any]) -> str:
    lines = [f"{row['status']:<11} {row['ref']}" for row in document["pushed"]]
    for row in document["rejected"]:
        why = f": {row['problem']}" if row.get("problem") else ""
        lines.append(f"{row['status']:<11} {row['ref']}{why}")
    lines += [f"{'behind':<11} {ref}" for ref in document["behind"]]
    count = document["unchanged"]
    others = f"{count} unchanged" if count or not lines else ""
    return "\n".join([*lines, others] if others else lines)
