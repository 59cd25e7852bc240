"""`uwf verify`."""

import pytest
from cli.program import ANSWER, Uwf
from commands.forging import forge, run_by, says

from uwf_git.cli.verify import note_problems, render_signatures, signature_row
from uwf_git.commands.verify.history import SignedCommit
from uwf_git.model.names import Oid
from uwf_git.store.signatures import Verdict
from uwf_git.store.store import Store, open_store


@pytest.fixture
def thread(uwf: Uwf) -> str:
    """Return a thread of one step."""
    return uwf.stepped()


@pytest.fixture
def store(uwf: Uwf) -> Store:
    """Return the store, for tests that forge commits."""
    return open_store(str(uwf.session.repo))


def test_text_is_a_line_a_problem_and_one_what_to_do(
    store: Store, uwf: Uwf, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = f"refs/threads/{thread}"
    change = says("Uwf-Role: writer\n", "Uwf-Role: w\x1b[31m%1B[31m\n")
    forge(store, ref, {1: change, 0: says("Uwf-Depth: 0", "Uwf-Depth: 4")})

    ran = uwf("verify", "--format", "text")

    assert ran.status == 5
    lines = ran.out.splitlines()
    assert lines[0] == f"{ref}: Uwf-Depth is 4, and must be 0"
    assert lines[1].startswith("  in: commit ")
    assert lines[2].startswith("  hint: no version of uwf writes such a commit")
    assert len(lines) % 3 == 0
    assert "\x1b" not in ran.out
    assert "problems were found" in ran.err
    assert "more are not listed" not in ran.err
    # Signatures add problems to those that were listed at most.
    monkeypatch.setattr("uwf_git.cli.verify.MOST_TOLD", 1)
    assert "problems were found (more are not listed)" in uwf("verify").err


def test_divergence_alone_is_a_note(store: Store, uwf: Uwf, thread: str) -> None:
    ref = f"refs/threads/{thread}"
    uwf.json("remote", "add", "origin", "/nowhere")
    before = store.refs.find(ref)
    assert before is not None
    store.refs.create(f"refs/uwf/remotes/origin/threads/{thread}", before)
    (now,) = forge(store, ref, {-1: run_by(b"Mallory <m@x>")})[-1:]

    ran = uwf("verify", "--format", "text")

    assert ran.status == 0
    assert ran.out.startswith("ok: ")
    assert ran.err.startswith(f"note: {ref} has diverged: it is at {now}, and remote origin had it")
    assert uwf("thread", "list", "--format", "text").out.count("ready, diverged") == 1
    shown = uwf("thread", "show", thread, "--format", "text").out
    assert f"diverged  origin had it at {before}: `uwf fetch origin` says what to do" in shown


def test_config_that_an_agent_changes_is_told_until_it_is_verified(uwf: Uwf) -> None:
    evil = 'git -C "$UWF_REPO" config uwf.onEvent "touch ran"'
    uwf.json("thread", "step", uwf.begun(uwf.agent(f"{evil}; {ANSWER}")))

    for _ in range(2):
        assert "not by your uwf: uwf.onevent;" in uwf("thread", "list").err
    assert [each["message"].split(" was ")[0] for each in uwf.json("verify")["notes"]] == [
        "the store's setting uwf.onevent"
    ]
    assert uwf("thread", "list").err == ""
    assert uwf.json("verify")["notes"] == []
    uwf.json("config", "set", "retries", "2")
    uwf.json("remote", "add", "hub", "/hub.git")
    assert uwf("thread", "list").err == ""


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
