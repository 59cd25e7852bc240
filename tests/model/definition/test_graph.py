import pytest
from workflow_file import SOUND, problems_of, read, spoiled

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


def test_entries_may_stand_without_the_word_graph() -> None:
    entries = SOUND[SOUND.index("    - from: $START") :]
    assert read(f"{HEAD}moderator:\n{entries}").graph == GRAPH


def test_flat_list_may_stand_below_the_word_graph() -> None:
    assert read(HEAD + FLAT.replace("moderator:", "moderator:\n  graph:")).graph == GRAPH


@pytest.mark.parametrize(("start", "end"), [("__start__", "__end__"), ("__START__", "__END__")])
def test_every_spelling_of_the_ends_is_stored_alike(start: str, end: str) -> None:
    assert read(SOUND.replace("$START", start).replace("$END", end)).graph == GRAPH


def test_when_and_condition_are_one_in_either_form() -> None:
    assert read(SOUND.replace("condition:", "when:")).graph == GRAPH
    assert read(HEAD + FLAT.replace("when:", "condition:")).graph == GRAPH


@pytest.mark.parametrize("fallback", ["to: $END", "to: $END\n          condition: null"])
def test_fallback_may_leave_its_condition_out(fallback: str) -> None:
    assert read(spoiled("to: $END", fallback)).graph == GRAPH


def test_condition_loses_the_line_break_of_its_block() -> None:
    text = spoiled("condition: meta.ok = false", "condition: |\n            meta.ok = false")
    assert read(text).graph == GRAPH


AT_CONDITION = "moderator.graph[2].transitions[0].condition"


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("true", "must be text or left out, not true; leave it out if it always holds"),
        ("false", "must be text or left out, not false; remove the transition"),
        ("1", "must be text, not a number; write it in quotes"),
        ("[a]", "must be text, not a list"),
        ("''", "the condition is empty; leave it out if it always holds"),
        ("' \t'", "the condition is empty; leave it out if it always holds"),
        ("'$random() > 0.5'", "$random is not allowed, since routing must be repeatable"),
        ("'$eval(\"1\")'", "$eval is not allowed, since routing must be repeatable"),
    ],
)
def test_condition_that_cannot_be_asked_is_reported(condition: str, message: str) -> None:
    text = spoiled("condition: meta.ok = false", f"condition: {condition}")
    assert problems_of(text) == [(18, AT_CONDITION, message)]


def test_condition_that_is_no_jsonata_is_reported_on_one_line() -> None:
    [(line, path, message)] = problems_of(spoiled("meta.ok = false", "meta.(ok"))
    assert (line, path) == (18, AT_CONDITION)
    assert message
    assert "\n" not in message


def test_condition_given_twice_is_reported() -> None:
    text = spoiled("condition: meta.ok = false", "condition: a\n          when: b")
    assert problems_of(text) == [
        (
            19,
            "moderator.graph[2].transitions[0].when",
            "condition and when mean the same; keep one",
        )
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "path", "message"),
    [
        (
            "to: checker",
            "to: cheker",
            14,
            "moderator.graph[1].transitions[0].to",
            "no role is called 'cheker'; did you mean 'checker'?",
        ),
        (
            "to: $END",
            "to: end",
            19,
            "moderator.graph[2].transitions[1].to",
            "no role is called 'end'; did you mean '$END'?",
        ),
        (
            "to: checker",
            "to: zzz",
            14,
            "moderator.graph[1].transitions[0].to",
            "no role is called 'zzz'; there is writer, checker, $END",
        ),
        (
            "from: checker",
            "from: cheker",
            15,
            "moderator.graph[2].from",
            "no role is called 'cheker'; did you mean 'checker'?",
        ),
        (
            "from: $START",
            "from: START",
            9,
            "moderator.graph[0].from",
            "no role is called 'START'; did you mean '$START'?",
        ),
        ("to: checker", "to: [a]", 14, "moderator.graph[1].transitions[0].to", "not a list"),
        ("to: checker", "when: a", 14, "moderator.graph[1].transitions[0]", "'to' is missing"),
        (
            "to: $END",
            "to: $START",
            19,
            "moderator.graph[2].transitions[1].to",
            "$START begins a thread; no transition leads to it",
        ),
    ],
)
def test_wrong_name_is_reported_with_its_place(
    old: str, new: str, line: int, path: str, message: str
) -> None:
    first = problems_of(spoiled(old, new))[0]
    assert (first[:2], message in first[2]) == ((line, path), True), first


def test_typo_is_the_only_problem_when_its_meaning_is_plain() -> None:
    assert len(problems_of(spoiled("to: checker", "to: cheker"))) == 1
    assert len(problems_of(spoiled("to: checker", "to: zzz"))) == 1


def test_missing_from_is_reported() -> None:
    text = spoiled("    - from: writer\n      transitions:", "    - transitions:")
    assert problems_of(text) == [(12, "moderator.graph[1]", "'from' is missing")]


def test_way_out_of_the_end_is_reported() -> None:
    text = SOUND + "    - {from: $END, transitions: [{to: writer}]}\n"
    assert problems_of(text) == [
        (20, "moderator.graph[3].from", "$END ends the thread; it has no transitions")
    ]


def test_second_entry_from_one_role_is_reported() -> None:
    text = SOUND + "    - {from: writer, transitions: [{to: $END}]}\n"
    assert problems_of(text) == [
        (
            20,
            "moderator.graph[3].from",
            "a second entry from writer; write its transitions in the first",
        )
    ]


def test_second_entry_is_seen_through_another_spelling() -> None:
    text = SOUND + "    - {from: __start__, transitions: [{to: writer}]}\n"
    assert "a second entry from $START" in problems_of(text)[0][2]


def test_transition_after_one_that_always_holds_is_reported() -> None:
    text = SOUND + "        - to: writer\n          when: a\n"
    assert problems_of(text) == [
        (
            20,
            "moderator.graph[2].transitions[2]",
            "is never taken: one before it from checker always holds",
        )
    ]


def test_transition_that_is_never_taken_is_reported_in_a_flat_list() -> None:
    text = f"{HEAD}{FLAT}  - {{from: writer, to: $END}}\n"
    assert problems_of(text) == [
        (12, "moderator[4]", "is never taken: one before it from writer always holds")
    ]


@pytest.mark.parametrize(
    ("moderator", "path", "message"),
    [
        ("", "moderator", "a workflow needs a moderator: a list of transitions, the first from"),
        ("moderator:", "moderator", "a workflow needs a moderator"),
        ("moderator: []", "moderator", "a workflow needs a moderator"),
        ("moderator: {graph: []}", "moderator.graph", "a workflow needs a moderator"),
        ("moderator: {graph: {}}", "moderator.graph", "must be a list of transitions, not a mapp"),
        ("moderator: text", "moderator", "must be a list of transitions, not text"),
        ("moderator: {$ref: 6HJQX2FN8C4RA}", "moderator", "cannot refer to the store"),
        ("moderator: [text]", "moderator[0]", "must be a mapping with from, transitions, not text"),
        ("moderator: [{from: $START, to: writer}, 1]", "moderator[1]", "from, to, condition, when"),
        (
            "moderator: [{from: $START, transitions: {to: writer}}]",
            "moderator[0].transitions",
            "must be a list of transitions, not a mapping",
        ),
        (
            "moderator: [{from: $START, transitions: [writer]}]",
            "moderator[0].transitions[0]",
            "must be a mapping with to, condition, when, not text",
        ),
    ],
)
def test_moderator_of_the_wrong_shape_is_reported(moderator: str, path: str, message: str) -> None:
    [problem] = problems_of(HEAD + moderator)
    assert (problem[1], message in problem[2]) == (path, True), problem


def test_unknown_key_beside_the_graph_is_reported() -> None:
    assert problems_of(spoiled("  graph:\n", "  grap: []\n  graph:\n")) == [
        (8, "moderator.grap", "unknown key 'grap'; did you mean 'graph'?")
    ]


def test_mixed_forms_are_reported() -> None:
    text = SOUND + "    - {from: writer, to: $END}\n"
    assert (20, "moderator.graph[3].to", "unknown key 'to'; there is from, transitions") in (
        problems_of(text)
    )


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


def test_warning_of_a_role_that_nobody_may_follow() -> None:
    found = read(f'{SOUND.rstrip()}\n          when: "meta.ok = true"\n').warnings
    assert [(each.line, each.path) for each in found] == [(19, "moderator.graph[2].transitions[1]")]
    open_schema = spoiled("properties: {ok: {type: boolean}}", "additionalProperties: true")
    assert not read(open_schema).warnings
