from cli.program import Uwf


def test_thread_is_reported_as_markdown(uwf: Uwf) -> None:
    thread = uwf.begun()
    for _ in range(3):
        uwf.json("thread", "step", thread)

    told = uwf("thread", "read", thread).out

    assert told.startswith(f"# Do it.\n\nthread `{thread}` · workflow **demo**")
    assert "## 1. writer: What was said." in told
    assert "## Completed after 2 steps" in told
    assert uwf("thread", "read", thread, "--last", "1").out.count("## ") == 1


def test_no_terminal_obeys_what_an_agent_says(uwf: Uwf) -> None:
    script = (
        r"""printf '{"meta": {"text": "\\u001b[2J"}, "content": "\\u001b]0;x\\u0007\\u202e"}'"""
    )
    thread = uwf.begun(uwf.agent(script))
    uwf.json("thread", "step", thread)

    told = uwf("thread", "read", thread).out

    assert not {"\x1b", "\x07", "\u202e"} & set(told)
    assert r"\x1b[2J" in told


def test_number_of_events_is_natural(uwf: Uwf) -> None:
    assert uwf("thread", "read", uwf.begun(), "--last", "0").status == 2
