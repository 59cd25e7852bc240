import pytest
from workflow_file import SOUND, read, spoiled

from uwf_git.model.workflow import END, START, Transition

GRAPH = {
    START: (Transition("writer", None),),
    "writer": (Transition("checker", None),),
    "checker": (Transition("writer", "meta.ok = false"), Transition(END, None)),
}
HEAD = SOUND[: SOUND.index("moderator:")]
FLAT = """\
moderator:
  - {from: __START__, to: writer, when: null}
  - {from: writer, to: checker, when: null}
  - {from: checker, to: writer, when: "meta.ok = false"}
  - {from: checker, to: __END__, when: null}
"""


def test_entries_of_the_newest_seed_are_read() -> None:
    assert read(SOUND).graph == GRAPH


def test_flat_list_of_the_older_seed_is_read() -> None:
    assert read(HEAD + FLAT).graph == GRAPH


@pytest.mark.parametrize(("start", "end"), [("__start__", "__end__"), ("__START__", "__END__")])
def test_every_spelling_of_the_ends_is_stored_alike(start: str, end: str) -> None:
    assert read(SOUND.replace("$START", start).replace("$END", end)).graph == GRAPH


def test_when_and_condition_are_one_in_either_form() -> None:
    assert read(SOUND.replace("condition:", "when:")).graph == GRAPH
    assert read(HEAD + FLAT.replace("when:", "condition:")).graph == GRAPH


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ("meta.okay = false and depth < 6", "okay"),
        ("$not(meta.OK)", "OK"),
        ("state.meta.x or history[meta.x] or steps[meta.x] or 'meta.x' = meta.ok", None),
    ],
)
def test_warning_of_a_member_that_no_answer_has(condition: str, named: str | None) -> None:
    found = read(spoiled("meta.ok = false", f'"{condition}"')).warnings
    assert [(each.line, each.path) for each in found] == [
        (17, "moderator.graph[2].transitions[0]") for _ in range(named is not None)
    ]
    assert all(repr(named) in each.message for each in found)
