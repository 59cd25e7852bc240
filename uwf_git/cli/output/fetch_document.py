"""The result of a fetch as a document and as text, for `uwf fetch` and `uwf clone`."""

from typing import Any

from uwf_git.commands.remote.fetch import Fetched, divergence_hint, refusal_hint

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
