from cli.program import Uwf
from store.small_packs import lose

from uwf_git.store.store import open_store


def test_a_report_is_written_to_a_file(uwf: Uwf) -> None:
    thread = uwf.stepped()

    ran = uwf("thread", "report", thread, "-o", "report.html")

    assert (ran.status, ran.out, ran.err) == (0, "", "")
    written = (uwf.place / "report.html").read_text()
    assert written.startswith("<!doctype html>")
    assert uwf("thread", "report", thread[:-1], "-o", "-").out == written


def test_a_damaged_thread_is_reported_and_an_error(uwf: Uwf, thread: str) -> None:
    commit = uwf.json("thread", "show", thread)["commit"]
    uwf.json("thread", "step", thread)
    lose(open_store(str(uwf.session.repo)), commit)

    ran = uwf("thread", "report", thread)
    ran.says(5, f"error: the report of thread {thread} is not whole: commit {commit}")
    assert "This thread is damaged." in ran.out
    assert f"`uwf verify {thread}`" in ran.err
