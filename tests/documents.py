"""Markdown pages, as GitHub shows them: links, headings, the commands that they name."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import click
from cli.program import load
from markdown_it import MarkdownIt
from markdown_it.token import Token

from uwf_git.cli.app.lazy_group import LazyGroup
from uwf_git.cli.cas import JSON_CAS
from uwf_git.cli.uwf import UWF

_PROGRAMS = {"uwf": UWF, "json-cas": JSON_CAS}

# What the texts hold besides the program's own words: names for which a reader puts his own.
_COMMAND = re.compile(r"(?<![\w./'\"=-])(?:uwf|json-cas) [^|;&#<>\n)`]*")
_HTML_TARGET = re.compile(r'(?:href|src|srcset)="([^"]+)"')


@dataclass
class Page:
    """What other pages and the checks ask of a page."""

    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    code: list[str] = field(default_factory=list)


@cache
def read_page(path: Path) -> Page:
    """Read a Markdown page."""
    page = Page()
    tokens = MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8"))
    counts: dict[str, int] = {}
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            words = "".join(each.content for each in tokens[number + 1].children or [])
            page.anchors.add(_slug(words, counts))
        _collect([token, *(token.children or [])], page)
    return page


def _collect(tokens: Sequence[Token], page: Page) -> None:
    for token in tokens:
        page.links += [str(v) for k, v in token.attrs.items() if k in ("href", "src")]
        if token.type in ("html_block", "html_inline"):
            page.links += _HTML_TARGET.findall(token.content)
        elif token.type in ("code_inline", "code_block", "fence"):
            page.code.append(token.content)


def _slug(words: str, counts: dict[str, int]) -> str:
    """Return the anchor that GitHub gives to a heading."""
    plain = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
    counts[plain] = counts.get(plain, -1) + 1
    return f"{plain}-{counts[plain]}" if counts[plain] else plain


def dead_links(root: Path, path: Path) -> Iterator[str]:
    """Yield the links of a page that lead to no file or to no heading below *root*."""
    for link in read_page(path).links:
        url = urlsplit(link)
        if url.scheme:
            continue
        target = (path.parent / unquote(url.path)).resolve() if url.path else path
        if not target.is_relative_to(root) or not target.exists():
            yield f"{path.relative_to(root)}: there is no {link}"
        elif url.fragment and url.fragment not in read_page(target).anchors:
            yield f"{path.relative_to(root)}: there is no heading {link}"


def reached_from(path: Path) -> set[Path]:
    """Return the files to which the links of a page lead, and those of these pages."""
    found: set[Path] = set()
    ahead = [path]
    while ahead:
        here = ahead.pop()
        if here in found:
            continue
        found.add(here)
        if here.suffix == ".md":
            urls = [urlsplit(link) for link in read_page(here).links]
            paths = [url.path for url in urls if url.path and not url.scheme]
            ahead += [(here.parent / unquote(each)).resolve() for each in paths]
    return {each for each in found if each.is_file()}


def unknown_commands(path: Path) -> Iterator[str]:
    """Yield the commands and options that a page names in code, and that do not exist."""
    for code in read_page(path).code:
        joined = re.sub(r"\\\n\s*>?", " ", code)
        for found in _COMMAND.findall(joined):
            if complaint := _complaint(_words(found)):
                yield f"{path.name}: {complaint}: {found.strip()}"


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # a quotation that goes on in the next line
        return command.split()


def _complaint(words: list[str]) -> str:
    """Say which word of a command line is no command and no option; empty if all are."""
    entry: Any = _PROGRAMS[words.pop(0)]
    shared = _options(entry)
    while isinstance(entry, LazyGroup) and words:
        word = words.pop(0)
        if word in ("--", *_PROGRAMS):  # as the name of a server: `claude mcp add uwf -- …`
            return ""
        if word in shared or not word[0].isalpha() or word.isupper() or word == "…":
            if word in ("--repo", "--format") and words:
                words.pop(0)
            continue
        if word not in entry.table:
            return f"no command {word}"
        entry = entry.table[word]
    options = shared | (set() if isinstance(entry, LazyGroup) else _options(load(entry)))
    given = [word.partition("=")[0].strip("…,.:") for word in words if word.startswith("--")]
    unknown = [each for each in given if each not in options]
    return f"no option {unknown[0]}" if unknown else ""


def _options(command: click.Command) -> set[str]:
    return {
        name
        for param in command.params
        if isinstance(param, click.Option)
        for name in (*param.opts, *param.secondary_opts)
    } | {"--help"}
