"""The man pages of `docs/man/`, written from the code: one for each command, and for each group.

test_documents.py compares them; `pytest --update-golden tests/test_documents.py` writes them.
Source: man-pages(7), groff_man(7).
"""

import inspect
import re
from collections.abc import Iterator

import click
from cli.program import entries, load
from reference import entry_is_hidden

from uwf_git.cli.app.lazy_group import EXIT_STATUS, LazyGroup, is_shared
from uwf_git.cli.app.verb import Verb
from uwf_git.cli.cas import JSON_CAS
from uwf_git.cli.uwf import UWF

_PROGRAMS = {"uwf": UWF, "json-cas": JSON_CAS}


def man_pages() -> dict[str, str]:
    """Return the pages by their file names."""
    # What `git help uwf` looks for.
    pages = {"git-uwf.1": ".so man1/uwf.1\n"}
    for name, program in _PROGRAMS.items():
        pages[f"{name}.1"] = _page(name, program.summary, program)
        for path, entry in entries(program, name):
            if not entry_is_hidden(entry):
                page = _page(path, entry.summary, load(entry))
                pages[f"{path.replace(' ', '-')}.1"] = page
    return pages


def _page(path: str, summary: str, command: click.Command) -> str:
    name = path.replace(" ", "-")
    with click.Context(command, info_name=path, max_content_width=200) as context:
        usage = " ".join(command.collect_usage_pieces(context))
        records = [
            record
            for option in command.get_params(context)
            if isinstance(option, click.Option) and (command is UWF or not is_shared(option))
            if (record := option.get_help_record(context)) is not None
        ]
    lines = [
        f'.TH "{name.upper()}" 1 "" uwf "Manual of uwf"',
        ".SH NAME",
        f"{_text(name)} \\- {_text(summary)}",
        ".SH SYNOPSIS",
        f".B {_text(path)}",
        _text(usage),
        ".SH DESCRIPTION",
        *_paragraphs(command),
    ]
    if isinstance(command, LazyGroup):
        shown = [each for each in command.table.items() if not entry_is_hidden(each[1])]
        lines += _items("COMMANDS", [(f"{path} {word}", each.summary) for word, each in shown])
    lines += _items("OPTIONS", records)
    exits = dict(command.exits) if isinstance(command, Verb) else {}
    meanings = EXIT_STATUS if command in _PROGRAMS.values() else exits
    lines += _items("EXIT STATUS", [(str(status), words) for status, words in meanings.items()])
    if isinstance(command, Verb | LazyGroup) and command.examples:
        lines += [".SH EXAMPLES", ".EX", *map(_text, command.examples), ".EE"]
    parent = path.rpartition(" ")[0].replace(" ", "-")
    if parent:
        lines += [".SH SEE ALSO", f".BR {_text(parent)} (1)"]
    return "\n".join(lines) + "\n"


def _paragraphs(command: click.Command) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", inspect.cleandoc(command.help or ""))):
        if number:
            yield ".PP"
        yield _text(" ".join(paragraph.replace("`", "").split()))


def _items(title: str, items: list[tuple[str, str]]) -> list[str]:
    lines = [f".SH {title}"] if items else []
    for name, words in items:
        lines += [".TP", f".B {_text(name)}", _text(" ".join(words.replace("`", "").split()))]
    return lines


def _text(words: str) -> str:
    """Return *words* as groff prints them: a hyphen stays one, and a line begins no request."""
    told = words.replace("\\", "\\e").replace("-", "\\-")
    told = "".join(each if each.isascii() else f"\\[u{ord(each):04X}]" for each in told)
    return f"\\&{told}" if told.startswith((".", "'")) else told
