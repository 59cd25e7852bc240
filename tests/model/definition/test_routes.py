from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st
from workflow_file import SOUND, problems_of, read, spoiled

from uwf_git.model.definition.definition import InvalidWorkflow

ROLES = "abcd"


def workflow(ways: Mapping[str, Sequence[str]]) -> str:
    """Write a workflow with roles a to d and these conditional transitions, flat, from line 3."""
    lines = ["name: x", "roles: {a: {}, b: {}, c: {}, d: {}}", "moderator:"]
    lines += [
        f"- {{from: {source}, to: {to}, when: meta.go}}" for source in ways for to in ways[source]
    ]
    return "\n".join(lines)


def test_graph_without_a_start_is_reported_alone() -> None:
    text = spoiled("    - from: $START\n      transitions:\n        - to: writer\n", "")
    assert problems_of(text) == [
        (8, "moderator.graph", "no transition leads out of $START, so no thread could begin")
    ]


def test_start_that_leads_nowhere_is_reported() -> None:
    text = spoiled("\n        - to: writer\n    - from: writer", " []\n    - from: writer")
    assert problems_of(text) == [
        (9, "moderator.graph[0]", "no transition leads out of $START, so no thread could begin")
    ]


def test_role_that_is_never_reached_is_reported() -> None:
    assert problems_of(spoiled("  checker:\n", "  lonely: {}\n  checker:\n")) == [
        (5, "roles.lonely", "no path from $START leads to this role")
    ]


def test_role_reached_from_an_unreached_one_is_unreached() -> None:
    text = workflow({"$START": "a", "a": ["b", "$END"], "b": "a", "c": "d", "d": ["$END"]})
    assert [each[1] for each in problems_of(text)] == ["roles.c", "roles.d"]


def test_role_without_a_way_out_is_reported_at_the_role() -> None:
    text = SOUND[: SOUND.index("    - from: checker")]
    assert problems_of(text) == [
        (
            5,
            "roles.checker",
            "checker has no outgoing transition; add one, to $END if it is the last",
        )
    ]


def test_role_with_an_empty_way_out_is_reported_at_its_entry() -> None:
    text = SOUND[: SOUND.index("    - from: checker")] + "    - {from: checker, transitions: []}"
    assert [each[:2] for each in problems_of(text)] == [(15, "moderator.graph[2]")]


def test_graph_that_never_ends_is_reported_once() -> None:
    text = spoiled("          condition: meta.ok = false\n        - to: $END\n", "")
    assert problems_of(text) == [
        (8, "moderator.graph", "no path from $START reaches $END, so no thread would ever end")
    ]


def test_roles_that_trap_a_thread_are_reported() -> None:
    text = workflow({"$START": "a", "a": ["b", "$END"], "b": "c", "c": "d", "d": "c"})
    assert [each[1] for each in problems_of(text)] == [
        "moderator[3]",
        "moderator[4]",
        "moderator[5]",
    ]
    assert "no path from b reaches $END" in problems_of(text)[0][2]


def test_role_that_leads_to_a_dead_end_is_not_reported_again() -> None:
    text = workflow({"$START": "a", "a": ["b", "$END"], "b": "c", "c": "d"})
    assert [each[1] for each in problems_of(text)] == ["roles.d"]


def reachable(ways: Mapping[str, Sequence[str]], source: str) -> set[str]:
    """Return what can be reached, by growing the set until it stays the same: slow and simple."""
    reached = {source}
    while True:
        grown = reached | {to for name in reached for to in ways.get(name, ())}
        if grown == reached:
            return reached
        reached = grown


@given(
    st.dictionaries(
        st.sampled_from(["$START", *ROLES]),
        st.lists(st.sampled_from([*ROLES, "$END"]), min_size=1, max_size=3, unique=True),
        min_size=1,
    )
)
def test_sound_means_that_every_role_is_reached_and_can_end(ways: dict[str, list[str]]) -> None:
    is_sound = reachable(ways, "$START") >= set(ROLES) and all(
        "$END" in reachable(ways, role) for role in ROLES
    )
    try:
        read(workflow(ways))
    except InvalidWorkflow:
        assert not is_sound
    else:
        assert is_sound
