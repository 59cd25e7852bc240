import pytest

from uwf_git.model.event_folds import count_steps, describe_step, first_line


def test_step_is_reported_by_its_meta_or_by_how_its_text_begins() -> None:
    for meta, content, said in [
        ({"summary": "Fixed the loop."}, "text", "Fixed the loop."),
        ({"title": "A title", "summary": "The summary"}, "", "The summary"),
        ({"summary": "  \n# First\nsecond"}, "", "First"),
        ({"summary": "###", "title": "told"}, "", "told"),
        ({"summary": 7}, "The text says it.", "The text says it."),
        ({"ok": True}, "\n\n## Heading\ntext", "Heading"),
        ({"ok": True}, '{"meta": {"ok": true}}', '{"ok": true}'),
        ({"ok": True}, "```\ncode\n```", '{"ok": true}'),
        ({"ok": True}, "", '{"ok": true}'),
        (["a", 1], "", '["a", 1]'),
        (None, "", "null"),
        ({"name": "日本"}, "", '{"name": "日本"}'),
    ]:
        assert describe_step(meta, content) == said


@pytest.mark.parametrize("meta", [{"summary": "x" * 100_000}, {"other": "x" * 100_000}])
def test_whatever_an_agent_says_is_one_short_line(meta: dict[str, str]) -> None:
    said = describe_step(meta, "")

    assert len(said) == 200
    assert said.endswith("…")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        (" \n\t\n", ""),
        ("one", "one"),
        ("\n  two  \nthree", "two"),
        ("# Title\n", "Title"),
        ("#\n##\nx", "x"),
        ("a\rb", "a"),
        ("\n" * 20_000 + "too late", ""),
    ],
)
def test_first_line_is_the_first_that_says_something(text: str, line: str) -> None:
    assert first_line(text) == line


def test_one_step_is_one() -> None:
    assert [count_steps(number) for number in (0, 1, 2)] == ["0 steps", "1 step", "2 steps"]
