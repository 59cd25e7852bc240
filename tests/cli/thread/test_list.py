from pathlib import Path

from cli.program import Uwf


def test_rows_are_the_newest_first_and_ended_ones_on_demand(uwf: Uwf) -> None:
    threads = [uwf.begun() for _ in range(3)]
    uwf.json("thread", "kill", threads[1])

    def listed(*words: str) -> list[str]:
        return [row["thread"] for row in uwf.json("thread", "list", *words)]

    assert listed() == [threads[2], threads[0]]
    assert listed("--all") == threads[::-1]
    assert listed("--all", "--limit", "1") == [threads[2]]
    assert listed("--all", "--status", "killed") == [threads[1]]
    assert listed("--workflow", "demo", "--limit", "2") == [threads[2], threads[0]]
    assert listed("--workflow", "other") == []


def test_rows_beyond_the_limit_are_told_of(uwf: Uwf) -> None:
    for _ in range(2):
        uwf.begun()

    cut, whole = (uwf("thread", "list", "--limit", limit) for limit in ("1", "2"))

    assert "more than 1" in cut.err
    assert whole.err == ""


def test_table_is_for_people(uwf: Uwf) -> None:
    thread = uwf.begun()

    told = uwf("thread", "list", "--format", "text").out

    assert told.splitlines()[0].split() == ["THREAD", "STATUS", "WORKFLOW", "NAME", "DEPTH", "SAID"]
    assert thread in told
    assert "start: Do it." in told


def test_damaged_thread_is_a_row_of_the_table_too(uwf: Uwf) -> None:
    whole, spoiled = uwf.begun(), uwf.begun()
    Path(f"{uwf.session.repo}/refs/threads/{spoiled}").write_text("garbage\n")

    ran = uwf("thread", "list", "--format", "text")

    assert ran.status == 0
    rows = {line.split()[0]: line for line in ran.out.splitlines()}
    assert "ready" in rows[whole]
    assert "damaged" in rows[spoiled]
    assert "does not hold an object id" in rows[spoiled]


def test_empty_list_is_a_list(uwf: Uwf) -> None:
    assert uwf.json("thread", "list") == []
    assert uwf("thread", "list", "--format", "text").status == 0


def test_limit_and_status_are_checked(uwf: Uwf) -> None:
    assert uwf("thread", "list", "--limit", "0").status == 2
    assert uwf("thread", "list", "--status", "bogus").status == 2
