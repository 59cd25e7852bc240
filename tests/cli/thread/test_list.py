from typing import Any

from cli.program import Ran, Uwf

from uwf_git.model.names import ThreadId, read_time_ms


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
    assert "no workflow other" in uwf("thread", "list", "--workflow", "other").err
    assert listed("--all", "--status", "killed", "--status", "ready") == threads[::-1]
    assert listed("--all", "--offset", "1") == [threads[1], threads[0]]
    # A status of ended threads asks for them; an active thread's does not.
    assert listed("--status", "killed") == [threads[1]]
    assert len(listed("--status", "ready")) == 2
    told = uwf("thread", "list", "--all", "--offset", "1", "--limit", "1")
    assert "more than 2; print them with --limit N, or the next ones with --offset 2" in told.err
    assert uwf("thread", "list", "--limit", "2").err == ""
    now_ms = read_time_ms(ThreadId(threads[1]))
    lately = screen(uwf, "thread", "list", "--limit", "2", now_ms=lambda: now_ms).err
    assert lately.splitlines()[0] == "note: there are more than 2; print them with --limit N"
    of_demo = screen(uwf, "thread", "list", "--workflow", "demo", now_ms=lambda: now_ms).out
    assert "killed" in of_demo


def test_invalid_times_are_wrong_usage(uwf: Uwf) -> None:
    word = uwf("thread", "list", "--after", "yesterday")
    twisted = uwf("thread", "list", "--after", "1d", "--before", "7d")

    assert (word.status, twisted.status) == (2, 2)
    assert "'yesterday' is no time: type how long ago" in word.err
    assert "nothing is after 1d and before 7d" in twisted.err
    for words in (("--offset", "-1"), ("--limit", "0"), ("--status", "bogus")):
        assert uwf("thread", "list", *words).status == 2


SCREEN = {"stdout_is_tty": True, "output_format": "text"}


def screen(uwf: Uwf, *words: str, columns: int = 80, **replaced: Any) -> Ran:
    """Show what a person sees at a terminal."""
    environ = {**uwf.session.environ, "COLUMNS": str(columns)}
    return uwf(*words, **{**SCREEN, "environ": environ, **replaced})


def test_nothing_to_list_is_said(uwf: Uwf) -> None:
    nothing = uwf("thread", "list", "--format", "text")
    uwf.json("thread", "kill", uwf.begun())
    ended = uwf("thread", "list", "--format", "text")
    other = uwf("thread", "list", "--all", "--status", "waiting", "--format", "text")

    assert nothing.err == "there are no threads yet: `uwf run WORKFLOW -p '…'` begins one\n"
    assert ended.err == "no active threads; 1 has ended: `uwf thread list --all` shows them\n"
    later = uwf("thread", "list", "--before", "7d", "--format", "text")
    assert other.err == "no thread matches\n"
    assert later.err == "no thread matches; --all looks at those that have ended\n"
    assert uwf("thread", "list").err == ""


def test_colour_comes_with_a_mark_and_only_where_it_may(uwf: Uwf) -> None:
    uwf.begun()
    here = {**uwf.session.environ, "COLUMNS": "80", "TERM": "xterm"}
    uwf.json("thread", "step", uwf.begun("human"))

    def shown(**environ: str) -> str:
        return screen(uwf, "thread", "list", environ=here | environ).out

    assert "\x1b[33m? waiting\x1b[0m" in shown()
    assert "\x1b" not in shown(NO_COLOR="1", FORCE_COLOR="1")
    assert "\x1b" not in shown(TERM="dumb")
    assert "\x1b[33m" in shown(TERM="dumb", FORCE_COLOR="1")
    assert "\x1b" not in uwf("thread", "list", environ=here).out


def test_name_is_answered_with_the_option_that_takes_it(uwf: Uwf) -> None:
    uwf("thread", "list", "develop").refused(2, "`uwf thread list --workflow develop`")


def test_newest_thread_of_an_empty_store_is_told_how_to_begin(uwf: Uwf) -> None:
    uwf("thread", "show", "@").refused(1, "`uwf run WORKFLOW -p '…'` begins one")
