"""`uwf remote ...`."""

from collections.abc import Sequence
from typing import Any

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import caller_of, without_password_prompt
from uwf_git.cli.output.screen import confirm, emit, note, wide_option
from uwf_git.cli.session import Session
from uwf_git.commands.inspect.list import name_damage
from uwf_git.commands.remote.fetch import Fetched, clone_store, fetch_remote, refusal_hint
from uwf_git.commands.remote.push import Pushed, push_remote
from uwf_git.commands.remote.push_plan import (
    FirstPush,
    find_first_push,
    list_remote_rows,
    remove_remote,
    repair_remotes,
)
from uwf_git.errors import BadUsage, Refused, UwfError
from uwf_git.store.remotes.remotes import add_remote
from uwf_git.store.store import Store
from uwf_git.store.threads.naming import parse_thread_id, resolve_thread


@verb(
    "uwf remote add origin git@example.com:team/threads.git",
    "uwf remote add backup /mnt/backup/threads.git",
    exits={1: "there is a remote of that name"},
)
@click.argument("name")
@click.argument("url")
def add_command(session: Session, name: str, url: str) -> None:
    """Add a remote.

    URL is a path, host:path, or a URL of ssh, http, https, git or file. It is written to git's
    config, so `git push NAME` carries threads and workflows as well; after `git fetch NAME`, `uwf
    fetch` takes them over. The remote may be any bare git repository; uwf need not be installed
    there.
    """
    text_argument(name, "the name")
    remote = add_remote(session.open_store(create=True), name, url, cwd=session.cwd)
    emit(session, {"name": remote.name, "url": remote.shown})


@verb("uwf remote list --format text")
@wide_option
def list_command(session: Session, *, wide: bool) -> None:
    """List the remotes.

    Each row says how many threads and workflows the remote had at the last fetch or push. Passwords
    in URLs are not shown.
    """
    rows = list_remote_rows(session.open_store(create=True))
    emit(session, rows, wide=wide, none="no remotes; `uwf remote add NAME URL` adds one")


@verb("uwf remote remove backup", exits={1: "it is not in this repository's config"})
@click.argument("name")
def remove_command(session: Session, name: str) -> None:
    """Remove a remote.

    What was fetched from it stays here, and the remote itself is not changed.
    """
    remote = remove_remote(session.open_store(), name)
    emit(session, {"name": remote.name, "url": remote.shown})


@verb(
    "uwf remote repair",
    exits={1: "there is no such remote, or its settings are not in this repository's config"},
)
@click.argument("name", required=False)
def repair_command(session: Session, name: str | None) -> None:
    """Make a mirror safe to use.

    In a clone made by `git clone --mirror`, `git fetch` moves threads back over steps, and `git
    push` deletes the threads of others; uwf only reads there. This writes the settings of `uwf
    remote add` instead; branches and tags are still fetched. Without NAME: every mirror. Then `uwf
    fetch` compares both sides.
    """
    repaired = repair_remotes(session.open_store(), caller_of(session), name)
    emit(session, {"repaired": repaired}, text=_text)


def _text(document: dict[str, list[str]]) -> str:
    return "\n".join(f"repaired {name}" for name in document["repaired"]) or "no remote is a mirror"


# `uwf push`.


@verb(
    "uwf push",
    "uwf push origin 01J7K9M2 --format text",
    exits={
        1: "there is no such remote, it cannot be reached, it or you refused something",
        2: "it is the first push of a project, without a terminal and --yes",
        4: "the remote has something that is not here; fetch first. The others are pushed",
        5: "a thread is damaged here, or of another format; the others are pushed",
    },
)
@click.argument("remote", required=False)
@click.argument("threads", metavar="[THREAD]...", nargs=-1)
@click.option("-y", "--yes", is_flag=True, help="Do not ask before a project's first push.")
def push_command(
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
    confirm_first_push(session, store, remote, threads, yes=yes)
    pushed = push_remote(store, without_password_prompt(session), remote, threads)
    emit(session, _document(pushed), text=_push_text)
    for each in pushed.warnings[:10]:
        note(f"{pushed.remote.name}: {each}")
    if pushed.gap is not None:
        note(f"note: {pushed.gap.message}; {pushed.gap.hint}")
    raise_failure(pushed.failure())


def confirm_first_push(
    session: Session,
    store: Store,
    remote: str | None,
    threads: Sequence[str],
    *,
    yes: bool = False,
) -> None:
    """Tell what the first push out of a project would send where, and ask, unless *yes*."""
    first = find_first_push(store, remote, threads)
    if first is None:
        return
    named = " ".join((first.remote.name, *threads))
    if not yes and not session.can_ask:
        raise BadUsage(
            f"the first push from this project's repository to {first.remote.name} would send "
            f"{_describe(first)}",
            code="first-push-unconfirmed",
            hint=f"if its readers may see them: `uwf push --yes {named}`; else add "
            "another remote: `uwf remote add NAME URL`",
            remote=first.remote.name,
            url=first.url,
            threads=first.threads,
            workflows=first.workflows,
        )
    note(f"The first push from this project's repository to {first.remote.name} sends")
    note(_describe(first))
    if not yes and not confirm("Push them?"):
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
        {"ref": ref, "status": name_damage(error), "problem": error.message}
        for ref, error in pushed.damaged
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


def _push_text(document: dict[str, Any]) -> str:
    lines = [f"{row['status']:<11} {row['ref']}" for row in document["pushed"]]
    for row in document["rejected"]:
        why = f": {row['problem']}" if row.get("problem") else ""
        lines.append(f"{row['status']:<11} {row['ref']}{why}")
    lines += [f"{'behind':<11} {ref}" for ref in document["behind"]]
    return _with_unchanged(lines, document["unchanged"])


def _with_unchanged(lines: list[str], count: int) -> str:
    return "\n".join([*lines, f"{count} unchanged"] if count or not lines else lines)


def raise_failure(failure: UwfError | None) -> None:
    """Raise what a push or a fetch has not done, after its result was printed."""
    if failure is not None:
        raise failure


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
                "problem": each.finding.message
                if each.finding
                else f"here {each.local}, there {each.tracked}",
                "hint": each.hint,
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
        f"{event:<9} {row['ref']}: {row['problem']}"
        for event in ("diverged", "refused")
        for row in document[event]
    ]
    lines += [f"busy      {row['problem']}" for row in document["busy"]]
    lines += [f"ignored   {ref}" for ref in document["ignored"]]
    return _with_unchanged(lines, document["unchanged"])


@verb(
    "uwf fetch",
    "uwf fetch origin 01J7K9M2XNPQR5VWBCDF8G3H4T --format text",
    exits={
        1: "there is no such remote, it cannot be reached, sends too much, or lacks a THREAD",
        4: "a thread is busy, both sides went on, or two names differ in case only; the others "
        "are fetched",
        5: "a ref is damaged, there or here, and was not adopted; the others are fetched",
    },
)
@click.argument("remote", required=False)
@click.argument("threads", metavar="[THREAD]...", nargs=-1)
def fetch_command(session: Session, remote: str | None, threads: tuple[str, ...]) -> None:
    """Fetch threads and workflows from a remote.

    Fetches everything, or the named THREADs with their branches and the threads around them. Give
    the whole id of a thread that was never in this store. What is new or ahead there is checked for
    integrity and adopted, each thread while no process works on it. Nothing here is lost: where
    both sides went on, both are kept and named. Without REMOTE: the only one, else origin.
    """
    store = session.open_store()
    ids = [parse_thread_id(text) or resolve_thread(store, text) for text in threads]
    fetched = fetch_remote(store, without_password_prompt(session), remote, ids)
    emit(session, fetch_document(fetched), text=fetch_text)
    raise_failure(fetched.failure())


@verb(
    "uwf clone git@example.com:team/threads.git",
    "uwf clone https://example.com/threads.git ~/threads.git",
    exits={
        1: "PATH exists, the remote cannot be reached or sends too much; nothing is left behind",
        4: "two workflows have names that differ in case only; the first is cloned",
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
    cloned = clone_store(without_password_prompt(session), url, path)
    document = {"repo": cloned.path, **fetch_document(cloned.fetched)}
    emit(session, document, text=lambda each: f"repo      {each['repo']}\n{fetch_text(each)}")
    raise_failure(cloned.fetched.failure())
