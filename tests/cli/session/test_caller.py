import pytest

from uwf_git.cli.session.caller import caller_of, without_password_prompt
from uwf_git.cli.session.settings import Session


@pytest.mark.parametrize("terminals", [(True, True), (True, False), (False, True), (False, False)])
def test_only_a_person_at_a_terminal_is_asked(
    session: Session, terminals: tuple[bool, bool]
) -> None:
    reads, shows = terminals
    caller = without_password_prompt(session._replace(stdin_is_tty=reads, stderr_is_tty=shows))
    asked = caller.environ.get("GIT_TERMINAL_PROMPT") != "0"
    assert asked == (reads and shows)
    assert dict(session.environ).items() <= dict(caller.environ).items()


def test_format_that_a_person_prefers_is_none_of_the_agents(session: Session) -> None:
    there = session._replace(environ={"UWF_FORMAT": "text", "UWF_REPO": "a"})

    assert dict(caller_of(there).environ) == {"UWF_REPO": "a"}
