import pytest

from uwf_git.cli.session.settings import wants_colour


@pytest.mark.parametrize(
    ("environ", "at_terminal", "elsewhere"),
    [
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ({"NO_COLOR": "", "FORCE_COLOR": ""}, True, False),
    ],
)
def test_colours_are_for_terminals_unless_the_user_says_otherwise(
    environ: dict[str, str], *, at_terminal: bool, elsewhere: bool
) -> None:
    assert wants_colour(environ, is_terminal=True) is at_terminal
    assert wants_colour(environ, is_terminal=False) is elsewhere
