"""`uwf verify`."""

from collections.abc import Iterable
from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.screen import emit, note, render_text
from uwf_git.cli.session import Session, with_typed_store
from uwf_git.commands.verify.history import (
    Finding,
    SignedCommit,
    note_changed_settings,
    note_own_judges,
    verify_signatures,
)
from uwf_git.commands.verify.verify import MOST_TOLD, VerifyResult, check_ranges, verify
from uwf_git.errors import StoreDamaged
from uwf_git.model.text import one_line

_WHERE = ("commit", "node", "path")


@verb(
    "uwf verify",
    "uwf verify 01J7K9M2 solve-issue",
    "uwf verify refs/archive/01J7K9M2XNPQR5VWBCDF8G3H4T --format text",
    "uwf verify --signatures | "
    'jq -e \'.problems == [] and all(.signatures[]; .status | IN("good", "derived"))\'',
    exits={5: "problems were found; all of them are listed"},
)
@click.argument("refs", metavar="[REF]...", nargs=-1)
@click.option(
    "--signatures",
    "with_signatures",
    is_flag=True,
    help="Print who signed each commit as well, also of joined branches, by git's gpg.* settings. "
    "A signature that does not belong to its commit, or whose key was revoked, is a problem; a "
    "commit without a signature, or with one by an unknown key, is none. Derived commits (a split, "
    "the start of a branch, a join) are not signed: they follow from the commits before them.",
)
@click.option(
    "--files",
    "with_files",
    is_flag=True,
    help="Also check that the projects on this machine have the commits of files that steps name.",
)
def command(
    session: Session,
    refs: tuple[str, ...],
    *,
    with_signatures: bool,
    with_files: bool,
) -> None:
    """Check the integrity of the store.

    REF is a thread's id or a beginning of it, a workflow's name, or a full ref; without REF,
    everything is checked. Every commit and every node is read again: nodes against their names and
    schemas, references, each step against the one before, what commits say against what they hold,
    and now.json against the history. Without REF, HEAD, every ref, packed-refs and the files of
    objects are checked as well, as `git fsck` does. Nothing is changed. If something other than uwf
    has changed settings of the store since an agent was started, a note says so once.

    Only a signature proves the name of a person, a note or a time. What has diverged from a remote
    is a note and no problem: both sides are kept.
    """
    store = session.open_store()
    verified = verify(store, list(refs))
    verified = verified._replace(notes=verified.notes + note_changed_settings(store))
    if with_files:
        found = [*check_ranges(store, verified.targets, cwd=session.cwd)]
        verified = verified._replace(
            troubles=verified.troubles + tuple(each for is_lost, each in found if is_lost),
            notes=verified.notes + tuple(each for is_lost, each in found if not is_lost),
        )
    signed: list[SignedCommit] = []
    if with_signatures:
        tips = [(each.ref, each.tip) for each in verified.targets if each.tip is not None]
        wrong = {each.commit for each in verified.troubles}
        signed = list(verify_signatures(store, session.environ, tips, wrong))
        forged = tuple(each.finding for each in signed if each.finding is not None)
        notes = (*verified.notes, *note_own_judges(store))
        verified = verified._replace(troubles=verified.troubles + forged, notes=notes)
    document = _document(verified)
    if with_signatures:
        document["signatures"] = [signature_row(each) for each in signed]
    width = session.text_width()
    emit(session, document, text=lambda document: _text(document, width))
    note_problems(signed)
    for each in verified.notes:
        note(f"note: {each.message}; {each.hint}")
    if verified.troubles:
        count = len(verified.troubles)
        some = "1 problem was" if count == 1 else f"{count} problems were"
        raise StoreDamaged(
            f"{some} found{' (more are not listed)' if count >= MOST_TOLD else ''}",
            code="store-has-problems",
            hint="each has a hint; copy the store before you change anything in it",
            count=count,
        )


def _document(verified: VerifyResult) -> dict[str, Any]:
    return {
        "checked": verified.checked._asdict(),
        "problems": [_problem(each) for each in verified.troubles],
        "notes": [_problem(each) for each in verified.notes],
        "unsigned": verified.unsigned,
    }


def _problem(trouble: Finding) -> dict[str, Any]:
    names = ("ref", "commit", "node", "path", "message", "hint")
    told = trouble._replace(hint=with_typed_store(trouble.hint))
    return {name: getattr(told, name) for name in names}


def _text(document: dict[str, Any], width: int | None) -> str:
    told = _findings(document)
    signatures = render_signatures(document.get("signatures", []), width=width)
    return f"{told}\n\n{signatures}" if signatures else told


def _findings(document: dict[str, Any]) -> str:
    if not document["problems"]:
        counts = [
            f"{count} {name.removesuffix('s') if count == 1 else name}"
            for name, count in document["checked"].items()
        ]
        return f"ok: {', '.join(counts)}{_unsigned(document['unsigned'])}"
    lines: list[str] = []
    for each in document["problems"]:
        lines.append(one_line(": ".join(filter(None, (each["ref"], each["message"])))))
        if where := ", ".join(f"{key} {each[key]}" for key in _WHERE if each[key]):
            lines.append(f"  in: {one_line(where)}")
        lines.append(f"  hint: {one_line(each['hint'])}")
    return "\n".join(lines)


def _unsigned(count: int) -> str:
    if not count:
        return ""
    some, them = ("1 commit is", "it") if count == 1 else (f"{count} commits are", "them")
    return f"; {some} not signed: only a signature proves who made {them}"


# The output of `uwf verify --signatures`: rows, table and notes.

_ABBREVIATED = 12
_MOST_NOTES = 10


def signature_row(signed: SignedCommit) -> dict[str, Any]:
    """Return the JSON object of one commit; it has a ``problem`` unless it is good or unsigned."""
    row, verdict = signed._asdict(), signed.verdict
    del row["verdict"]
    told = {name: getattr(verdict, name) for name in ("status", "signer", "key", "format")}
    return row | told | ({} if verdict.problem is None else {"problem": verdict.problem})


def render_signatures(rows: list[dict[str, Any]], *, width: int | None = None) -> str:
    """Format rows for people, one line per commit, as `git log --format='%G? %GS %h %s'` does."""
    shown = [
        {
            "status": row["status"],
            "signer": row["signer"] or row["key"],
            "commit": row["commit"][:_ABBREVIATED],
            "ref": row["ref"].removeprefix("refs/"),
            "depth": row["depth"],
            "said": row["said"],
        }
        for row in rows
    ]
    return render_text(shown, width=width)


def note_problems(found: Iterable[SignedCommit]) -> None:
    """Print what to do about signatures that are neither good nor bad, each hint once."""
    notes: dict[str, None] = {}
    for signed in found:
        verdict = signed.verdict
        if verdict.problem is not None and signed.finding is None:
            hint = f"; {verdict.hint}" if verdict.hint else ""
            notes[f"note: {verdict.status}: {verdict.problem}{hint}"] = None
    for text in list(notes)[:_MOST_NOTES]:
        note(text)
    if len(notes) > _MOST_NOTES:
        note(f"note: and {len(notes) - _MOST_NOTES} more reasons; each commit's is in the JSON")
