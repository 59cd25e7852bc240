from uwf_git.cli.calling import caller_of
from uwf_git.cli.settings import Session


def test_caller_is_the_session_s(session: Session) -> None:
    caller = caller_of(session)

    assert caller == (session.now_ms, session.environ, session.cwd)
