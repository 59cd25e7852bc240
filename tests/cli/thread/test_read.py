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


def test_number_of_events_is_natural(uwf: Uwf) -> None:
    assert uwf("thread", "read", uwf.begun(), "--last", "0").status == 2
