"""`uwf push`."""

import sys
from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.session.caller import without_password_prompt
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import write_stderr
from uwf_git.commands.remote.push import Pushed, push_remote
from uwf_git.commands.remote.push_plan import FirstPush, find_first_push
from uwf_git.errors import BadUsage, Refused


@verb(
    "uwf push",
    "uwf push origin 01J7K9M2 --format text",
    exits={
        1: "there is no such remote, it cannot be reached, it or you refused something",
        2: "it is the first push of a project, without a terminal and --yes",
        4: "the remote has something newer; fetch first. The others are pushed",
        5: "a thread is damaged here; the others are pushed",
    },
)
@click.argument("remote", required=False)
@click.argument("threads", metavar="[THREAD]...", nargs=-1)
@click.option("-y", "--yes", is_flag=True, help="Do not ask before a project's first push.")
def command(
    session: Session,
    remote: str | None,
    threads: tuple[str, ...],
    yes: bool,  # noqa: FBT001 (click's way)
) -> None:
    """Push threads and workflows to a remote.

    Everything, or the THREADs that are named; one pushed thread is complete there. Only
    fast-forwards: what the remote has and this store does not know is not changed. A thread that
    was archived here is moved to the archive there. Without REMOTE: the only one, else origin; a
    project's own remotes count only if none was added by `uwf remote add`. The first push out of a
    project's repository asks at a terminal, and elsewhere needs --yes.
    """
    store = session.open_store()
    first = find_first_push(store, remote, threads)
    if first is not None:
        _announce(session, first, yes=yes)
    pushed = push_remote(store, without_password_prompt(session), remote, threads)
    emit(session, _document(pushed), text=_text)
    if pushed.gap is not None:
        note(f"note: {pushed.gap.message}; {pushed.gap.hint}")
    failure = pushed.failure()
    if failure is not None:
        raise failure


def _announce(session: Session, first: FirstPush, *, yes: bool) -> None:
    if not yes and not (session.stdin_is_tty and session.stderr_is_tty):
        raise BadUsage(
            f"the first push from this project's repository to {first.remote.name} would send "
            f"{_describe(first)}",
            code="first-push-unconfirmed",
            hint=f"if its readers may see them: `uwf push --yes {first.remote.name}`; else add "
            "another remote: `uwf remote add NAME URL`",
            remote=first.remote.name,
            url=first.url,
            threads=first.threads,
            workflows=first.workflows,
        )
    note(f"The first push from this project's repository to {first.remote.name} sends")
    note(f"{_describe(first)}")
    if yes:
        return
    write_stderr("Push them? [y/N] ")
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refused("nothing was pushed", code="push-not-confirmed")


def _describe(first: FirstPush) -> str:
    counts = ((first.threads, "thread"), (first.workflows, "workflow"))
    sent = [f"{count} {word}{'s' * (count > 1)}" for count, word in counts if count]
    return f"{' and '.join(sent)}, with all prompts and answers, to {first.url}"


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
