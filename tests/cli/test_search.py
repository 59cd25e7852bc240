import json
from pathlib import Path

import pytest
from cli.program import Uwf


def test_rows_are_one_json_list_a_line_each(uwf: Uwf) -> None:
    uwf.json("thread", "step", uwf.begun())

    told = uwf("search", "-i", "what|DO", "--regex").out

    assert [(row["step"], row["field"]) for row in json.loads(told)] == [
        (1, "content"),
        (0, "prompt"),
    ]
    assert told.count("\n") == 2
    assert json.loads(uwf("search", "What", stdout_is_tty=True).out) == [json.loads(told)[0]]
    assert uwf("search", "What", "--format", "yaml").out.startswith("- thread: ")


def test_nothing_found_is_an_empty_list(uwf: Uwf) -> None:
    uwf.begun()

    assert uwf.json("search", "what|DO") == []
    told = uwf("search", "nowhere", "--format", "text")
    assert (told.out, told.err) == ("", "nothing is found\n")


def test_damaged_thread_is_a_line_too(uwf: Uwf) -> None:
    whole, spoiled = uwf.begun(), uwf.begun()
    Path(f"{uwf.session.repo}/refs/threads/{spoiled}").write_text("garbage\n")

    ran = uwf("search", "Do it", "--format", "text")

    assert ran.status == 0
    assert ran.out.splitlines()[0].startswith(f"{spoiled}  damaged: ref refs/threads/")
    assert ran.out.splitlines()[1].startswith(f"{whole}  start")


def test_rows_beyond_the_limit_are_reported(uwf: Uwf) -> None:
    for _ in range(2):
        uwf.begun()

    cut, whole = (uwf("search", "Do", "--limit", limit) for limit in ("1", "2"))

    assert (len(json.loads(cut.out)), "more than 1" in cut.err) == (1, True)
    assert (len(json.loads(whole.out)), whole.err) == (2, "")


def test_role_workflow_and_active_are_asked_for(uwf: Uwf) -> None:
    thread = uwf.stepped()
    uwf.json("thread", "kill", thread)

    for workflow in ("demo", uwf.json("thread", "show", thread)["workflow"][:8].lower()):
        assert len(uwf.json("search", "What", "--role", "writer", "--workflow", workflow)) == 1
    assert uwf.json("search", "What", "--role", "checker") == []
    assert "no workflow other" in uwf("search", "What", "--workflow", "other").err
    assert uwf.json("search", "What", "--active") == []


def test_key_in_the_environment_is_masked(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file())
    uwf.json("thread", "start", "demo", "-p", "use sk-Live-12345 now")
    environ = {**uwf.session.environ, "SOME_API_KEY": "sk-Live-12345"}

    assert uwf.json("search", "use", environ=environ)[0]["excerpt"] == "use [masked] now"
    assert uwf.json("search", "Live", environ=environ)[0]["excerpt"] == "[masked]"


@pytest.mark.parametrize("words", [["("], ["", "--limit", "1"]])
def test_bad_pattern_is_wrong_usage(words: list[str], uwf: Uwf) -> None:
    uwf("search", "--regex", *words).refused(2, "cannot be searched for")
