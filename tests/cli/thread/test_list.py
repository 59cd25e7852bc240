from typing import Any

from cli.program import Ran, Uwf

from uwf_git.model.names import ThreadId, read_time_ms

SCREEN = {"stdout_is_tty": True, "output_format": "text"}


def screen(uwf: Uwf, *words: str, columns: int = 80, **replaced: Any) -> Ran:
    """Show what a person sees at a terminal."""
    environ = {**uwf.session.environ, "COLUMNS": str(columns)}
    return uwf(*words, **{**SCREEN, "environ": environ, **replaced})


def test_person_sees_what_ended_lately_too(uwf: Uwf) -> None:
    uwf.begun()
    killed = ThreadId(uwf.killed())
    uwf.begun()
    lately: dict[str, Any] = {"now_ms": lambda: read_time_ms(killed)}

    told = screen(uwf, "thread", "list", "--limit", "2", **lately)
    assert told.err.splitlines()[0] == "note: there are more than 2; print them with --limit N"
    assert "killed" in screen(uwf, "thread", "list", "--workflow", "demo", **lately).out
    assert uwf("thread", "list", "--limit", "2").err == ""


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
