from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st
from workflow_file import read

from uwf_git.model.definition.definition import InvalidWorkflow

ROLES = "abcd"


def workflow(ways: Mapping[str, Sequence[str]]) -> str:
    """Write a workflow with roles a to d and these conditional transitions, flat, from line 3."""
    lines = ["name: x", "roles: {a: {}, b: {}, c: {}, d: {}}", "moderator:"]
    lines += [
        f"- {{from: {source}, to: {to}, when: meta.go}}" for source in ways for to in ways[source]
    ]
    return "\n".join(lines)


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
