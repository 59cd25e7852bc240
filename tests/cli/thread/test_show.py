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


def test_text_has_a_line_a_fact_and_the_fields_of_each_step(uwf: Uwf) -> None:
    thread = uwf.begun()
    begun = uwf("thread", "show", thread, "--format", "text").out
    for _ in range(2):
        uwf.json("thread", "step", thread)

    told = uwf("thread", "show", thread, "--full", "--format", "text").out

    assert max(map(len, told.splitlines())) < 120
    assert "\n1. writer " in told
    assert "\n2. checker " in told
    assert "   text: " in told
    assert " UTC\n" in told
    assert "1. " not in begun
    last = uwf("thread", "show", thread, "--format", "text").out
    assert "\n1. writer " not in last
    assert "\n2. checker " in last


def test_text_tells_of_a_failed_try(uwf: Uwf) -> None:
    thread = uwf.begun(uwf.agent("echo no; exit 1"))
    assert uwf("thread", "step", thread).status == 3

    told = uwf("thread", "show", thread, "--format", "text").out

    assert "error     1. try: exit status 1" in told
