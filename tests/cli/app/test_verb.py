from cli.demo_verbs import say

from uwf_git.cli.app.verb import Verb


def test_verb_is_a_click_command() -> None:
    assert isinstance(say, Verb)
    assert say.examples == ("demo say hello",)
