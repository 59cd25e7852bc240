import pytest

from uwf_git.cli.verify import note_problems, render_signatures, signature_row
from uwf_git.commands.verify.history import SignedCommit
from uwf_git.model.names import Oid
from uwf_git.store.signatures import Verdict

GOOD = Verdict("good", "ssh", "ada@example.com", "SHA256:abc")
UNKNOWN = Verdict("untrusted", "ssh", None, "SHA256:def", "nobody knows it", "add `it` to them")


def signed(verdict: Verdict, *, said: str = "writer: words") -> SignedCommit:
    return SignedCommit(
        "refs/threads/01J7K9M2XNPQR5VWBCDF8G3H4T",
        Oid("0123456789abcdef" * 2 + "01234567"),
        thread="01J7K9M2XNPQR5VWBCDF8G3H4T",
        event="step",
        depth=1,
        role="writer",
        said=said,
        verdict=verdict,
    )


def test_text_is_one_line_whatever_was_said() -> None:
    assert (
        len(render_signatures([signature_row(signed(GOOD, said="a\nb\x1b[2J"))]).split("\n")) == 3
    )


def test_what_to_do_is_reported_once(capfd: pytest.CaptureFixture[str]) -> None:
    bad = Verdict("bad", "ssh", problem="incorrect signature")
    note_problems([signed(each) for each in (GOOD, UNKNOWN, UNKNOWN, bad, Verdict("unsigned"))])
    assert capfd.readouterr().err == ("note: untrusted: nobody knows it; add `it` to them\n")


def test_notes_do_not_go_on_for_ever(capfd: pytest.CaptureFixture[str]) -> None:
    note_problems([signed(UNKNOWN._replace(hint=str(number))) for number in range(12)])
    *shown, last = capfd.readouterr().err.splitlines()
    assert len(shown) == 10
    assert last.startswith("note: and 2 more reasons")
