"""Command-line options that several adapters share."""

from pathlib import Path

from uwf_git.agentkit.extraction.adapter import AdapterQuestion
from uwf_git.agentkit.programs.options import (
    clean_argument,
    find_object_schema,
    option,
    schema_keys,
    setting_options,
    write_file,
)


def test_an_option_without_a_value_is_left_out() -> None:
    assert option("--model", "m") == ("--model", "m")
    assert (option("--model", None), option("--model", "")) == ((), ())


def test_settings_become_options_in_the_order_of_the_keys() -> None:
    question = AdapterQuestion(prompt="", settings={"model": "m", "provider": "p", "env": "X"})
    assert setting_options(question, ("provider", "model", "effort")) == [
        *("--provider", "p"),
        *("--model", "m"),
    ]


def test_schema_is_of_the_whole_answer_unless_words_are_wanted() -> None:
    schema = find_object_schema(AdapterQuestion(prompt="", schema={"type": "object"}))
    assert schema is not None
    assert schema["required"] == ["content", "meta"]
    words = AdapterQuestion(prompt="", schema={"type": "object"}, settings={"schema": "words"})
    assert find_object_schema(words) is None
    assert find_object_schema(AdapterQuestion(prompt="")) is None
    assert schema_keys("its own --x") == {
        "schema": "words: ask for the fields in words, not by its own --x"
    }


def test_file_is_written_whatever_the_text(tmp_path: Path) -> None:
    path = write_file(str(tmp_path), "prompt.md", "Tú \ud83d\n")
    assert path == str(tmp_path / "prompt.md")
    assert (tmp_path / "prompt.md").read_bytes() == b"T\xc3\xba ?\n"


def test_argument_holds_no_zero_byte_and_no_half_surrogate() -> None:
    assert clean_argument("a\0b\ud83d") == "ab?"
