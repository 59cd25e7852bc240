"""The pages of `docs/` that are written from the code: the references of commands and agents.

test_documents.py compares them; `pytest --update-golden tests/test_documents.py` writes them.
"""

import inspect
import io
import re
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib import import_module
from itertools import groupby
from pathlib import Path
from unittest import mock

import click
from cli.program import entries, load
from error_codes import list_codes

from uwf_git.cli.app.lazy_group import EXIT_STATUS, LazyGroup, is_shared
from uwf_git.cli.app.verb import Verb
from uwf_git.cli.cas import JSON_CAS
from uwf_git.cli.uwf import UWF
from uwf_git.commands.admin import SETTINGS

HEAD = """# Reference of all commands

This page is written from the code, as `--help` is; do not edit it.

Results go to standard output, as text at a terminal and else as JSON; everything else goes to
standard error. `--repo`, `--format` and the other [shared options](#shared-options) are taken by
every command, before and after its name. [Exit statuses](#exit-status) mean the same everywhere; a
command lists those that it says more about. The agents have a
[reference of their own](reference-agents.md).
"""

AGENTS_HEAD = """# Reference of all agents

This page is written from the code: it is what `--help` prints; do not edit it.
[Writing agents](agents.md) says how agents are chosen, and what they may do.
"""

SETTINGS_HEAD = """They are in git config: `uwf config set` writes those of a store, `git
config --global` those of all your stores. Each adapter has its own: `uwf-claude --help`."""


ERRORS_HEAD = """# Reference of all errors

This page is written from the code; do not edit it. The code of an error is stable: it stands in
what a failed command prints as JSON (`error.code`), and in `UwfError.code` of the library. In a
message or hint, braces hold words of the case.
[Exit statuses](reference.md#exit-status) mean the same everywhere.
"""


def reference() -> str:
    """Return the page of all commands, as Markdown."""
    programs = {"uwf": UWF, "json-cas": JSON_CAS}
    lines = [HEAD, "## Commands", ""]
    for name, program in programs.items():
        lines += _contents(program, name)
    lines += ["", "## Shared options", "", *_options(UWF, "uwf")]
    lines += ["", "## Exit status", ""]
    lines += [f"- {status}: {meaning}" for status, meaning in EXIT_STATUS.items()]
    lines += ["", "New ones may be added; treat an unknown one as a failure.", ""]
    lines += ["## Settings", "", SETTINGS_HEAD, ""]
    lines += [f"- `{name}`: {_escaped(meaning)}" for name, meaning in SETTINGS.items()]
    for name, program in programs.items():
        lines += ["", f"## {name}", "", *_words(program)]
        for path, entry in entries(program, name):
            if not entry_is_hidden(entry):
                lines += ["", *_section(load(entry), path)]
    return "\n".join(lines) + "\n"


def agents_reference() -> str:
    """Return the page of the agents that come with uwf, as Markdown."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    scripts: dict[str, str] = project["project"]["scripts"]
    lines = [AGENTS_HEAD]
    for name, target in sorted(scripts.items()):
        module, _, function = target.partition(":")
        if ".adapters." in module:
            lines += [f"## {name}", "", "```text", _help_of(module, function), "```", ""]
    return "\n".join(lines)


def errors_reference() -> str:
    """Return the page of errors: of each code the exit status, the message and the hint."""
    parts = [ERRORS_HEAD.rstrip()]
    for code, found in groupby(list_codes(), lambda each: each.code):
        parts.append(f"## {code}")
        for number, each in enumerate(found):
            parts += [] if number else [f"Exit status {each.exit_status}."]
            parts += [f"> {_escaped(each.message)}"] if _is_said(each.message) else []
            parts += [f"Hint: {_escaped(each.hint)}"] if _is_said(each.hint) else []
    return "\n\n".join(parts) + "\n"


def _is_said(words: str) -> bool:
    return bool(re.sub(r"\{[^}]*\}|\W", "", words))


def _help_of(module: str, function: str) -> str:
    printed = io.StringIO()
    # An agent reads its arguments from the process.
    with mock.patch("sys.argv", ["agent", "--help"]), redirect_stdout(printed):
        status = getattr(import_module(module), function)()
    assert status == 0
    return printed.getvalue().rstrip("\n")


def entry_is_hidden(entry: object) -> bool:
    """Tell whether help leaves a command out."""
    return bool(getattr(entry, "hidden", False))


def _contents(program: LazyGroup, name: str) -> Iterator[str]:
    """List the commands of a program, each a link."""
    for path, entry in [(name, program), *entries(program, name)]:
        if not entry_is_hidden(entry):
            depth = "  " * path.count(" ")
            yield f"{depth}- [{path}](#{path.replace(' ', '-')}): {_escaped(entry.summary)}"


def _section(command: click.Command, path: str) -> Iterator[str]:
    yield f"### {path}"
    yield ""
    with click.Context(command, info_name=path) as context:
        usage = " ".join(command.collect_usage_pieces(context))
    yield f"    {path} {usage}"
    yield ""
    yield from _words(command)
    if not isinstance(command, LazyGroup):
        yield from _titled("Options:", list(_options(command, path)))
    if isinstance(command, Verb):
        exits = [f"- {status}: {_escaped(words)}" for status, words in command.exits.items()]
        yield from _titled("Exit status:", exits)
    if isinstance(command, Verb | LazyGroup):
        examples = [f"    {example}" for example in command.examples]
        yield from _titled("Examples:" if len(examples) > 1 else "Example:", examples)


def _titled(title: str, lines: list[str]) -> list[str]:
    return ["", title, "", *lines] if lines else []


def _words(command: click.Command) -> Iterator[str]:
    """Yield the help text, a line for each paragraph."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(command.help or ""))
    for number, paragraph in enumerate(paragraphs):
        if number:
            yield ""
        yield _escaped(" ".join(paragraph.split()))


def _options(command: click.Command, path: str) -> Iterator[str]:
    with click.Context(command, info_name=path, max_content_width=200) as context:
        for option in command.get_params(context):
            record = option.get_help_record(context) if isinstance(option, click.Option) else None
            if record and (command is UWF or not is_shared(option)):
                names, words = record
                yield f"- `{names}`: {_escaped(' '.join(words.split()))}"


def _escaped(words: str) -> str:
    """Return *words* so that Markdown shows them as they are; code in backticks stays."""
    parts = words.split("`")
    parts[::2] = [re.sub(r"([\\<*|])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)
