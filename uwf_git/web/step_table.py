"""The table of steps and failed attempts in a report, with what they took."""

from collections.abc import Iterator
from typing import Any

from uwf_git.agents.command_line import agent_name
from uwf_git.model.limits import count_tokens, find_cost
from uwf_git.model.text import render_time
from uwf_git.web.elements import line, table
from uwf_git.web.parts import badge, is_played, render_cost, render_ms, render_tokens

_HEADS = ("Step", "Role", "Agent", "Started", "Time", "Tokens", "USD")
_NUMBERS = frozenset({4, 5, 6})
_SHOWN = {"step", "answer", "join", "attempt"}


def render_steps(document: dict[str, Any]) -> str:
    """Return the table, and below it the sums; steps of branches are between split and join."""
    rows = [*_rows(document["entries"], "")]
    if not rows:
        return ""
    totals = document["totals"]
    rows.append(
        (
            "<strong>all</strong>",
            ", ".join(tell_account(totals)[:1]),
            "",
            "",
            render_ms(totals["durationMs"]),
            render_tokens(totals["tokens"]),
            render_cost(totals["costUsd"]),
        )
    )
    return table("Steps", _HEADS, rows, numbers=_NUMBERS)


def tell_account(totals: dict[str, Any]) -> list[str]:
    """Return in words what a thread took: steps, time, tokens, cost, as far as it was told."""
    steps, failed = totals["steps"], totals["failedAttempts"]
    told = f"{steps} {'step' if steps == 1 else 'steps'}"
    if totals["takenBack"]:
        told += f" ({totals['takenBack']} taken back)"
    if failed:
        told += f", {failed} failed {'attempt' if failed == 1 else 'attempts'}"
    tokens, cost = render_tokens(totals["tokens"]), render_cost(totals["costUsd"])
    return [
        told,
        render_ms(totals["durationMs"]),
        f"{tokens} tokens" if tokens else "",
        f"{cost} USD" if cost else "",
    ]


def _rows(entries: list[dict[str, Any]], around: str) -> Iterator[tuple[str, ...]]:
    for entry in entries:
        if entry["event"] in _SHOWN:
            yield _row(entry, around)
        for branch in entry.get("branches", ()):
            inner = f"{around}{branch['number']}."
            yield from _rows(branch.get("entries", []), inner)


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
