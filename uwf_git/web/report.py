"""The report of a thread: one HTML file without script, whose policy allows only its own style."""

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from uwf_git.agents.command_line import agent_name
from uwf_git.commands.inspect.graph import ThreadReport
from uwf_git.commands.inspect.story import walk_entries
from uwf_git.engine.picture.draw import lay_out, make_plan, render_svg
from uwf_git.model.event_folds import count_attempts
from uwf_git.model.event_rules import STEPS
from uwf_git.model.limits import count_tokens, find_cost
from uwf_git.model.text import render_time
from uwf_git.web.entries import (
    REPORT_SHEET,
    WIDE,
    badge,
    code,
    escape_line,
    facts,
    fields,
    is_played,
    json_value,
    line,
    render_command,
    render_cost,
    render_entries,
    render_excerpt,
    render_markdown,
    render_ms,
    render_tokens,
    render_value,
    table,
    tell_error,
    tell_spent,
)


def render_report(report: ThreadReport) -> str:
    """Return the HTML of *report*; equal reports give equal bytes."""
    document = report.document
    no_state = document.get("state") is None or document["state"].get("value") == {}
    sections = [
        ("now", "How it stands", _render_present(document)),
        ("task", "Task", render_excerpt(document.get("prompt"), top=3)),
        ("picture", "Picture", _render_picture(report)),
        ("steps", "Steps", render_steps(document)),
        ("story", "Step by step", render_entries(document["entries"])),
        ("state", "State of the thread", "" if no_state else render_value(document["state"])),
        ("check", "Check it yourself", render_check(document)),
    ]
    shown = [section for section in sections if section[2]]
    body = "".join(
        f'<section id="{name}">\n<h2>{title}</h2>\n{inside}</section>\n'
        for name, title, inside in shown
    )
    links = " · ".join(f'<a href="#{name}">{title}</a>' for name, title, _ in shown)
    return (
        f"{_render_head(document)}<body>\n<header>\n{_render_title(document)}</header>\n"
        f'<nav aria-label="Sections"><p class="aside">{links}</p></nav>\n'
        f"<main>\n{_render_problems(document)}{body}</main>\n</body>\n</html>\n"
    )


def _render_head(document: dict[str, Any]) -> str:
    digest = b64encode(hashlib.sha256(REPORT_SHEET.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    title = escape_line(f"{_get_title(document)} · {document['thread']}")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{REPORT_SHEET}</style>\n</head>\n"
    )


def _get_title(document: dict[str, Any]) -> str:
    return document.get("title") or f"Thread {document['thread']}"


def _render_title(document: dict[str, Any]) -> str:
    status = document.get("status")
    told = [
        badge(status) if status else "",
        f"workflow {line(document['workflowName'])}" if "workflowName" in document else "",
        f"thread {code(document['thread'])}",
        f"started {render_time(document['startTime'])}" if "startTime" in document else "",
        *tell_account(document["totals"]),
    ]
    return f"<h1>{line(_get_title(document))}</h1>\n{facts(told)}"


def _render_problems(document: dict[str, Any]) -> str:
    if not document["problems"]:
        return ""
    items = "".join(f"<li>{line(each)}</li>\n" for each in document["problems"])
    verify = code(f"uwf verify {document['thread']}")
    return (
        '<div class="problem" role="alert">\n<p><strong class="bad">✗ This thread is damaged.'
        "</strong> What cannot be read is missing below:</p>\n"
        f"<ul>\n{items}</ul>\n<p>{verify} checks all of it.</p>\n"
        "</div>\n"
    )


def _render_present(document: dict[str, Any]) -> str:
    if "status" not in document:
        return ""
    ended = document.get("endTime")
    error = document.get("error")
    question = document.get("question")
    limits = ", ".join(f"{name} {each}" for name, each in document["limits"].items())
    told = {
        "last step": _render_last(document["entries"]),
        "newest event": line(document["said"]),
        "ended" if ended else "updated": render_time(ended or document["lastUpdateTime"]),
        "next": "" if ended or not document.get("next") else line(document["next"]),
        "because": _render_text(document.get("reason")),
        "by": _render_text(document.get("by")),
        "hint": _render_text(document.get("hint")),
        "error": "" if not error else _render_text(tell_error(error)),
        "question": "" if not question else _render_question(question),
        "held up by": "".join(f"<p>{each}</p>\n" for each in _tell_held(document)),
        "parent": _tell_parent(document),
        "limits": line(limits) if limits else "",
        "agents": fields({role: render_command(each) for role, each in document["agents"].items()}),
        "diverged": json_value(document["diverged"]) if document.get("diverged") else "",
    }
    return fields(told)


def _render_last(entries: list[dict[str, Any]]) -> str:
    kept = [each for each in entries if each.get("meta") and not each.get("takenBack")]
    if not kept:
        return ""
    step = kept[-1]
    link = f'<a href="#c-{step["commit"]}">{line(step["title"])}</a>'
    return f"{link}\n{render_value(step['meta'])}"


def _render_text(text: Any) -> str:
    return json_value(text) if isinstance(text, str) and text else ""


def _render_question(question: dict[str, Any]) -> str:
    asked = [question.get(name) for name in ("description", "systemPrompt")]
    asked.append("\n".join(map(str, question.get("fields") or [])))
    parts = "".join(render_markdown(each, top=3) for each in asked if isinstance(each, str))
    return f"<p>for a person, who plays {line(str(question.get('role')))}</p>\n{parts}"


def _tell_held(document: dict[str, Any]) -> Iterator[str]:
    for held in document.get("heldBy", []):
        told = " ".join(str(held[name]) for name in ("label", "thread", "status") if name in held)
        error = f": {held['error']}" if "error" in held else ""
        yield line(f"{told}{error}")


def _tell_parent(document: dict[str, Any]) -> str:
    parent = document.get("parentThread")
    if parent is None:
        return ""
    how = "this thread is a branch of it" if "branchOf" in document else "an agent of it began this"
    return f"{code(parent)} ({how})"


def _render_picture(report: ThreadReport) -> str:
    if report.picture is None:
        return ""
    picture = render_svg(lay_out(make_plan(report.picture)), stands_alone=False)
    return f"{WIDE.format('Picture')}{picture}</div>\n"


_HEADS = ("Step", "Role", "Agent", "Started", "Time", "Tokens", "USD")


def render_steps(document: dict[str, Any]) -> str:
    """Return the table, and below it the sums; steps of branches are between split and join."""
    rows = [*_rows(document["entries"], "")]
    if not rows:
        return ""
    totals = document["totals"]
    account = (
        "<strong>all</strong>",
        tell_account(totals)[0],
        "",
        "",
        render_ms(totals["durationMs"]),
        render_tokens(totals["tokens"]),
        render_cost(totals["costUsd"]),
    )
    return table("Steps", _HEADS, [*rows, account], numbers={4, 5, 6})


def tell_account(totals: dict[str, Any]) -> list[str]:
    """Return in words what a thread took: steps, time, tokens, cost, as far as it was told."""
    steps, failed = totals["steps"], totals["failedAttempts"]
    told = f"{steps} {'step' if steps == 1 else 'steps'}"
    if totals["takenBack"]:
        told += f" ({totals['takenBack']} taken back)"
    if failed:
        told += f", {count_attempts(failed)}"
    spent = tell_spent(totals["tokens"], totals["costUsd"])
    return [told, render_ms(totals["durationMs"]), *spent]


def _rows(entries: list[dict[str, Any]], around: str) -> Iterator[tuple[str, ...]]:
    for entry in entries:
        if entry["event"] in STEPS or entry["event"] == "attempt":
            yield _row(entry, around)
        for branch in entry.get("branches", ()):
            yield from _rows(branch.get("entries", []), f"{around}{branch['number']}.")


def _row(entry: dict[str, Any], around: str) -> tuple[str, ...]:
    usage = entry.get("usage", {})
    began = entry.get("startedAt")
    return (
        f'<a href="#c-{entry["commit"]}">{_name_place(entry, around)}</a>',
        _name_role(entry),
        line(agent_name(entry["agent"])) if is_played(entry) else "",
        render_time(began).removesuffix(" UTC") if isinstance(began, int) else "",
        render_ms(entry.get("durationMs")),
        render_tokens(count_tokens(usage)),
        render_cost(find_cost(usage)),
    )


def _name_place(entry: dict[str, Any], around: str) -> str:
    number = str(entry["depth"])
    if entry["event"] == "attempt":
        number = f"{entry['depth'] + 1}, try {entry.get('attempt', '')}"
    return f"branch {around[:-1]}: {number}" if around else number


def _name_role(entry: dict[str, Any]) -> str:
    role = line(entry["role"]) if entry["role"] else line(entry["title"])
    if entry["event"] == "attempt":
        kind = entry.get("error", {}).get("kind", "failed")
        return f'{role} <span class="bad">✗ {line(str(kind))}</span>'
    if entry.get("problem"):
        return f"{role} {badge('damaged')}"
    return f'{role} <span class="soft">taken back</span>' if entry.get("takenBack") else role


_COMMIT_HEADS = ("Commit", "Event", "Recorded (UTC)", "By", "Signature")
_VERDICTS = {"good": ("good", "✓"), "bad": ("bad", "✗"), "revoked": ("bad", "✗")}


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
    entries = walk_entries(document["entries"])
    rows = [_commit_row(entry) for entry in entries if entry["event"] is not None]
    problem = document.get("signatureProblem")
    note = f"<p>Signatures were not checked: {line(problem)}</p>\n" if problem else ""
    return (
        "<p>Each event above is a commit, and each text a file in it that is named after a hash of "
        "its content. These commands check that without this report, in any repository that has "
        f"the thread (git there, or as {code('git -C STORE')}):</p>\n"
        f"{fields(commands)}{note}{table('Commits', _COMMIT_HEADS, rows)}"
    )


def _commit_row(entry: dict[str, Any]) -> tuple[str, ...]:
    return (
        code(entry["commit"]),
        f'<a href="#c-{entry["commit"]}">{line(entry["title"])}</a>',
        render_time(entry["time"]).removesuffix(" UTC"),
        line(entry["by"]),
        _render_verdict(entry["signature"]),
    )


def _render_verdict(verdict: dict[str, Any]) -> str:
    status = str(verdict.get("status"))
    kind, sign = _VERDICTS.get(status, ("soft", "·"))
    signer = verdict.get("signer") or verdict.get("key")
    who = f" {line(signer)}" if isinstance(signer, str) else ""
    why = f": {line(verdict['problem'])}" if verdict.get("problem") else ""
    return f'<span class="{kind}">{sign} {line(status)}</span>{who}{why}'
