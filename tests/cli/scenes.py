"""Pages of what is typed and what comes, run again in this process.

A line of a page that begins with `$` is typed, `>` goes on in a file that it writes, `#` says what
it is about. What is below them is the answer, which `pytest --update-golden` writes; a line of
it that looks like one of those has a space before it:

    $ write FILE        a file of the lines below; a program if they begin with #!
    $ uwf thread list   a command; `COLUMNS=60 uwf …` is typed at a terminal of that width
    $ uwf run - < text  with standard input, in which \\xff is a byte
    $ git init          another program
"""

import io
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from cli.program import Uwf
from programs import write_program

from uwf_git.cli.app.lazy_group import run
from uwf_git.cli.cas import JSON_CAS
from uwf_git.cli.uwf import UWF

PAGES = Path(__file__).parents[1] / "golden" / "screens"
_PROGRAMS = {"uwf": UWF, "json-cas": JSON_CAS}
_TYPED = re.compile(r"^[#$] .*\n(?:>.*\n)*", re.MULTILINE)


def retell(
    page: str,
    uwf: Uwf,
    monkeypatch: pytest.MonkeyPatch,
    names: Mapping[str, str],
    check: Callable[[str, str], None] = lambda _line, _out: None,
) -> str:
    """Run a page; return it as it is now. *names* stand for texts, and *check* sees each answer."""
    monkeypatch.chdir(uwf.place)
    return "".join(_answers((PAGES / page).read_text(), uwf, monkeypatch, names, check))


def _answers(
    text: str,
    uwf: Uwf,
    monkeypatch: pytest.MonkeyPatch,
    names: Mapping[str, str],
    check: Callable[[str, str], None],
) -> Iterator[str]:
    for told in _TYPED.findall(text):
        yield told
        line, *rest = told.splitlines()
        if line.startswith("$ write "):
            path = uwf.file("".join(f"{each[2:]}\n" for each in rest), name=line[8:])
            if rest[0].startswith("> #!"):
                write_program(Path(path), Path(path).read_text())
            check(line, "")
        elif line.startswith("$ "):
            typed, _, fed = line[2:].partition(" < ")
            given = io.BytesIO(fed.encode().decode("unicode_escape").encode("latin-1"))
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(given))
            status, out, err = _run([names.get(each, each) for each in shlex.split(typed)], uwf)
            check(line, out)
            both = re.sub(r"(?m)^(?=[$#>] )", " ", out + err)
            yield both if typed.startswith("json-cas") else _mask(steady(both, uwf), uwf)
            yield f"? {status}\n\n" if status else "\n"


def _mask(text: str, uwf: Uwf) -> str:
    """Return *text* without ends of the ids of branches, short names of commits, times at work."""
    text = text.replace(str(uwf.place.parent), "..")
    text = re.sub(r'("executionTime":)\d+', r"\1 T", text)
    text = re.sub(r"\b(01K74[0-9]{5})[0-9A-Z]+", r"\1", text)
    return re.sub(r"\b[0-9a-f]{12}\b", "0" * 12, text)


def _run(words: list[str], uwf: Uwf) -> tuple[int, str, str]:
    """Run a command, at a terminal if COLUMNS stands before it."""
    session = uwf.session._replace(environ={**uwf.session.environ, "TERM": "dumb"})
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        session = session._replace(environ={**session.environ, name: value})
        if name == "COLUMNS":
            session = session._replace(stdout_is_tty=True, stderr_is_tty=True, output_format="text")
    prog = words.pop(0)
    if prog == "git":
        ran = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout, ran.stderr
    status = run(_PROGRAMS[prog], words, prog=prog, environ=session.environ, session=session)
    return status, *uwf.capsys.readouterr()


def steady(text: str, uwf: Uwf) -> str:
    """Return *text* without what differs from run to run: places, ids, hashes, times that passed.

    The clock of a test goes on with each look at it, and a drive looks until its agent has ended.
    """
    text = text.replace(str(uwf.session.repo), "STORE").replace(str(uwf.place), "PLACE")
    for number, each in enumerate(sorted(set(re.findall(r"\b01K74[0-9A-Z]{5}", text))), 1):
        text = text.replace(each, f"01K74{number:05}")
    text = re.sub(r"(?m)^\d{4}-\d\d-\d\d\n", "", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?", "yyyy-mm-dd hh:mm:ss", text)
    text = re.sub(r"\d\d:\d\d:\d\d", "hh:mm:ss", text)
    text = re.sub(r"\b[0-9a-f]{40}\b", "0" * 40, text)
    text = re.sub(r"\b[0-9A-HJKMNP-TV-Z]{13}\b", "HASH000000000", text)
    text = re.sub(r'("\w*Ms":)\d+', r"\1 T", text)
    return re.sub(r"(?<![\d.])(?: ?\d+ (?:s|min|h)| *\d+\.\d s)\b", " T s", text)
