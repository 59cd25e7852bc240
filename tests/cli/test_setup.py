import os
from collections.abc import Callable
from pathlib import Path

from agentkit.person import Seat
from cli.program import ANSWER, Uwf


def test_default_of_all_stores_is_the_user_s(uwf: Uwf, git: Callable[..., str]) -> None:
    uwf.json("config", "set", "agent", "of-the-store")
    ran = uwf("setup", "--agent", "mine", "--global", "--no-check", agent="of-the-process")
    ran.says(0, f"but the store {uwf.session.repo} has a setting of its own: of-the-store")
    assert "but UWF_AGENT is set and takes precedence: of-the-process" in ran.err
    assert git("config", "--global", "uwf.agent", cwd=uwf.place) == "mine\n"
    assert uwf.json("config", "get", "agent")["value"] == "of-the-store"


def test_user_without_a_store_gets_none_for_a_global_setting(uwf: Uwf) -> None:
    assert uwf("setup", "--agent", "mine", "--global", "--no-check", repo=None).status == 0
    assert not Path(os.environ["HOME"], ".uwf").exists()


def test_no_question_without_a_terminal(uwf: Uwf) -> None:
    uwf.agent(name="gemini")
    path = {**uwf.session.environ, "PATH": f"{uwf.place}:/bin"}
    uwf("setup", environ=path).refused(2, "`uwf setup --agent uwf-gemini`")


def test_person_at_a_terminal_is_asked(uwf: Uwf, seat: Seat) -> None:
    for name in ("claude", "gemini"):
        uwf.agent(ANSWER, name=name)
    repo = str(uwf.session.repo)
    path = f"{uwf.place}:/usr/bin:/bin"
    me = seat("-m", "uwf_git", "setup", "--no-check", cwd=uwf.place, UWF_REPO=repo, PATH=path)
    shown = me.answer("[1] ", "3")
    assert "1  uwf-claude" in shown
    assert "2  uwf-gemini" in shown
    me.answer("type a number from 1 to 2, or a name", "gemini")
    status, shown = me.end()

    assert status == 0
    assert "value: uwf-gemini" in shown
