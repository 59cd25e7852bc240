import json
from collections.abc import Callable

import pytest
from cli.ran import Ran
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.cli.options import explicit_format

Demo = Callable[..., Ran]


@pytest.mark.parametrize(
    ("words", "repo"),
    [
        (["deep", "settings"], None),
        (["--repo", "a", "deep", "settings"], "a"),
        (["deep", "--repo", "b", "settings"], "b"),
        (["deep", "settings", "--repo=c"], "c"),
        (["--repo", "a", "deep", "--repo", "b", "settings"], "b"),
        (["--repo", "a", "deep", "--repo", "b", "settings", "--repo", "c"], "c"),
    ],
)
def test_repo_may_stand_anywhere_and_the_last_one_counts(
    words: list[str], repo: str | None, demo: Demo
) -> None:
    assert json.loads(demo(*words).out)["repo"] == repo


@pytest.mark.parametrize(
    "words",
    [
        ["--format", "text", "say", "x"],
        ["say", "x", "--format", "text"],
        ["--format", "yaml", "say", "--format=text", "x"],
    ],
)
def test_format_may_stand_anywhere_and_the_last_one_counts(words: list[str], demo: Demo) -> None:
    assert demo(*words).out == "said: x\n"


def test_one_command_does_not_change_the_settings_of_the_next(demo: Demo) -> None:
    demo("say", "x", "--format", "text", "--repo", "a")

    assert json.loads(demo("deep", "settings").out)["repo"] is None


@pytest.mark.parametrize("words", [["--repo", "", "say", "x"], ["say", "x", "--repo="]])
def test_empty_repo_is_refused(words: list[str], demo: Demo) -> None:
    ran = demo(*words)

    assert ran.status == 2
    assert ran.err.startswith("error: invalid value for '--repo': it needs a path\n")


def test_unknown_format_is_refused_with_the_choices(demo: Demo) -> None:
    assert demo("say", "x", "--format", "xml").err == (
        "error: invalid value for '--format': 'xml' is not one of 'json', 'yaml', 'text'\n"
        "hint: `demo say --help` shows how it is typed\n"
    )


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ([], None),
        (["say", "json"], None),
        (["--format", "json"], "json"),
        (["--format=json", "say", "--format", "yaml"], "yaml"),
        (["--format", "xml"], None),
        (["--format"], None),
        (["--", "--format", "json"], None),
        (["--format", "--", "json"], None),
        (["--format-x=json", "--format", "--format=json"], None),
    ],
)
def test_format_is_known_before_the_words_are_understood(
    words: list[str], chosen: str | None
) -> None:
    assert explicit_format(words) == chosen


@given(st.lists(st.sampled_from(["--format", "json", "text", "--format=yaml", "--", "x"])))
def test_any_words_have_a_format_or_none(words: list[str]) -> None:
    assert explicit_format(words) in {None, "json", "text", "yaml"}


def test_version_stops_before_anything_else(demo: Demo) -> None:
    ran = demo("--version", "xyzzy")

    assert ran.status == 0
    assert ran.out.split()[0] == "demo"
