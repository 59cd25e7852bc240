from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session


def test_caller_is_the_session_s(session: Session) -> None:
    caller = caller_of(session)

    assert caller == (session.now_ms, session.environ, session.cwd)
