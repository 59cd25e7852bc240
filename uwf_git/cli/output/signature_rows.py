"""The output of `uwf verify --signatures`: rows, table and notes."""

from collections.abc import Iterable
from typing import Any

from uwf_git.cli.output.screen import note
from uwf_git.cli.output.table import render_text
from uwf_git.commands.verify.history import SignedCommit

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
