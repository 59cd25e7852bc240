from collections.abc import Callable

import pytest
from cli.demo_verbs import say
from cli.ran import Ran

from uwf_git.cli.app.verb import Verb

Demo = Callable[..., Ran]


def test_help_page_has_promise_options_example_and_exit_statuses_in_this_order(
    demo: Demo,
) -> None:
    page = demo("say", "--help").out

    parts = ["Usage: demo say [OPTIONS] THING\n", "  Say a thing.\n", "--times"]
    parts += ["EXAMPLE:\n  demo say hello\n", "EXIT STATUS:\n", "--repo PATH", "--format", "-h, "]
    places = [page.index(part) for part in parts]
    assert places == sorted(places)


def test_verb_gets_the_session_and_its_own_arguments_only(demo: Demo) -> None:
    assert demo("say", "ha", "--times", "2", "--repo", "x").out == '{"said":"haha"}\n'


def test_verb_is_a_click_command() -> None:
    assert isinstance(say, Verb)
    assert say.examples == ("demo say hello",)


@pytest.mark.parametrize("words", [["say"], ["say", "a", "b"], ["say", "--times", "x", "a"]])
def test_wrong_usage_is_refused_with_the_help_to_type(words: list[str], demo: Demo) -> None:
    ran = demo(*words)

    assert (ran.status, ran.out) == (2, "")
    assert ran.err.endswith("hint: `demo say --help` shows how it is typed\n")
