from cli.program import Uwf


def test_show_says_where_a_thread_stands(uwf: Uwf) -> None:
    thread = uwf.begun()
    uwf.json("thread", "step", thread)

    shown = uwf.json("thread", "show", thread[:26].lower())

    assert (shown["thread"], shown["status"], shown["depth"]) == (thread, "ready", 1)
    assert shown["step"]["content"] == "What was said."
    assert "steps" not in shown


def test_full_has_every_step(uwf: Uwf) -> None:
    thread = uwf.begun()
    for _ in range(2):
        uwf.json("thread", "step", thread)

    shown = uwf.json("thread", "show", thread, "--full")

    assert [step["role"] for step in shown["steps"]] == ["writer", "checker"]


def test_people_get_text_without_holes(uwf: Uwf) -> None:
    thread = uwf.begun()

    for form in ("text", "yaml"):
        ran = uwf("thread", "show", thread, "--format", form)
        assert ran.status == 0
        assert thread in ran.out
        assert "None" not in ran.out
        assert "undefined" not in ran.out
