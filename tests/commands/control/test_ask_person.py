import copy
from typing import Any

from agentkit.conftest import DOCUMENT

from uwf_git.agentkit.extraction.ladder import find_misfit
from uwf_git.commands.control.answer import FilledForm, ask_person, build_page
from uwf_git.engine.turn_context import AgentContext, parse_context


class Answers:
    """A person with scripted answers."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.shown = ""

    def say(self, text: str) -> None:
        self.shown += text

    def read_line(self, prompt: str = "> ") -> str | None:
        self.shown += prompt
        return self.answers.pop(0)


def context(**replaced: Any) -> AgentContext:
    return parse_context(copy.deepcopy(DOCUMENT) | replaced)


def ask(me: Answers) -> FilledForm:
    role = context().current_role
    return ask_person(me, role, check=find_misfit, edit=lambda text: f"{text}Written.\n\n")


def test_page_shows_the_last_step_and_the_last_error() -> None:
    page = build_page(context(lastError={"kind": "schema", "message": "approved is missing"}))

    assert "The last step, by developer" in page
    assert '"summary": "fixed the redirect loop"' in page
    assert "They pass." in page
    assert "First read, then fix." not in page
    assert "The last attempt failed: approved is missing" in page


def test_page_shows_the_hint_if_there_is_one() -> None:
    assert "A hint for you: look at the tests\n" in build_page(context(hint="look at the tests"))
    assert "hint" not in build_page(context(hint=None))


def test_page_of_a_long_step_says_where_the_rest_is() -> None:
    step = DOCUMENT["steps"][-1] | {"content": "x" * 50_000}
    page = build_page(context(steps=[step]))

    assert len(page) < 30_000
    assert "`uwf thread read` shows all of it" in page


def test_page_of_a_first_step_has_no_last_one() -> None:
    page = build_page(context(steps=[], depth=0))

    assert "step 1 of solve-issue" in page
    assert "The last step" not in page


def test_the_last_question_is_asked_again_until_it_is_answered() -> None:
    me = Answers("y", "", "", "Fine.", ".", "hm", "yes please", "")

    assert ask(me).content == "Fine."
    assert me.shown.count("Your answer as") == 1


def test_editor_opens_what_was_typed_or_else_what_was_said_before() -> None:
    typed = Answers("y", "", "", "Typed. ", ":e", "")
    assert ask(typed).content == "Typed. Written."

    again = Answers("y", "", "", "Said. ", ".", "n", "", "", "", ":e", "y")
    assert ask(again).content == "Said. Written."
