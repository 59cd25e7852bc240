"""The end of a report: the commits behind it, who signed them, and how to check them without it."""

from typing import Any

from uwf_git.commands.inspect.thread_report import walk_entries
from uwf_git.model.text import render_time
from uwf_git.web.elements import code, fields, line, table

_HEADS = ("Commit", "Event", "Recorded (UTC)", "By", "Signature")
_SIGNS = {"good": ("good", "✓"), "bad": ("bad", "✗"), "revoked": ("bad", "✗")}


def render_check(document: dict[str, Any]) -> str:
    """Return the commands, and the commits in the order of the report."""
    thread, tip = document["thread"], document["commit"]
    commands = {
        "every commit and node": code(f"uwf verify {thread}"),
        "who signed": code(f"uwf verify --signatures {thread}"),
        "the same by git": code(f"git log --show-signature --first-parent {tip}"),
        "one signature": code(f"git verify-commit -v {tip}"),
        "git's objects": code(f"git fsck {tip}"),
        "this file again": code(f"uwf thread report {thread}"),
    }
    rows = [
        _row(entry) for entry in walk_entries(document["entries"]) if entry["event"] is not None
    ]
    problem = document.get("signatureProblem")
    note = f"<p>Signatures were not checked: {line(problem)}</p>\n" if problem else ""
    return (
        "<p>Each event above is a commit, and each text a file in it that is named after a hash of "
        "its content. These commands check that without this report, in any repository that has "
        f"the thread (git there, or as {code('git -C STORE')}):</p>\n"
        f"{fields(commands)}{note}{table('Commits', _HEADS, rows)}"
    )


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    return (
        code(entry["commit"]),
        f'<a href="#c-{entry["commit"]}">{line(entry["title"])}</a>',
        render_time(entry["time"]).removesuffix(" UTC"),
        line(entry["by"]),
        _render_verdict(entry["signature"]),
    )


def _render_verdict(verdict: dict[str, Any]) -> str:
    status = str(verdict.get("status"))
    kind, sign = _SIGNS.get(status, ("soft", "·"))
    signer = verdict.get("signer") or verdict.get("key")
    who = f" {line(signer)}" if isinstance(signer, str) else ""
    why = f": {line(verdict['problem'])}" if verdict.get("problem") else ""
    return f'<span class="{kind}">{sign} {line(status)}</span>{who}{why}'
