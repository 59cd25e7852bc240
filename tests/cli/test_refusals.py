"""What the programs refuse, one command after another: a page that is run again (scenes.py)."""

from collections.abc import Callable
from pathlib import Path

import pytest
from cli.program import Uwf
from cli.scenes import retell

# Words that no page can hold, and what they stand for.
WORDS = {"BYTES": "\udcff", "LINES": "x\ny", "LARGE": '{"a": 1' + "0" * 400 + "}"}


def test_whatever_is_refused_changes_nothing_and_is_answered_as_written_down(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]
) -> None:
    ready, waiting = uwf.stepped(), uwf.stepped(uwf.agent(), "checker=human", steps=2)
    uwf.json("remote", "add", "origin", "/x")
    before: dict[str, bytes] = {}

    def check(line: str, out: str) -> None:
        if line.startswith("$ write "):
            before.update(everything(uwf))
        assert (out, everything(uwf)) == ("", before), line

    names = {"READY": ready, "WAITING": waiting}
    told = retell("refusals.txt", uwf, monkeypatch, WORDS | names, check)
    for name, thread in names.items():
        told = told.replace(thread, name)
    golden("screens/refusals.txt", told)


def everything(uwf: Uwf) -> dict[str, bytes]:
    """Read all that a refused command might have changed: refs, settings, and files beside them."""
    store = Path(str(uwf.session.repo))
    files = [store / "config", *(store / "refs").rglob("*"), *uwf.place.rglob("*")]
    return {str(path): path.read_bytes() for path in files if path.is_file()}
