import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases
from workflow_file import read_flow_file, used

from uwf_git.engine.rehearsal import MOST_TURNS, check_flow_text, find_least, rehearse
from uwf_git.model.definition.definition import FlowText, Surroundings, UsedWorkflow

MADE_UP = Path(__file__).parent / "made_up"
WORKFLOWS = sorted((Path(__file__).parents[2] / "workflows").glob("*.yaml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_shipped_workflow_ends_when_all_say_the_least(path: Path) -> None:
    found = rehearse(read_flow_file(path.read_text()), "Do it.")

    assert found.problem is None
    assert found.roles


def test_what_a_rehearsal_finds(golden: Callable[[str, str], None]) -> None:
    def tell(_about: str, text: str) -> list[object]:
        found = rehearse(read_flow_file(text), "Do it.")
        assert len(found.roles) <= MOST_TURNS
        return [len(found.roles), found.roles[:3], found.problem, found.at]

    golden("engine/rehearsed.txt", tell_cases(MADE_UP / "rehearsed.json", {"rehearse": tell}))


SAY = "{outputSchema: {required: [t], properties: {t: {const: %s}}}}"
ROLES = f"roles: {{w: {SAY % 'x'}, v: {SAY % 'y'}, r: {{}}}}\n"
AGENT = "{type: agent, agentId: "
WORK, READ = f"{AGENT}w, verifiedBy: {{agentId: v, ", f"{AGENT}r, input: "
FOUND = {
    "flow": f"root: {{type: parallel, nodes: [{AGENT}w}}, {READ}a}}]}}",
    "graph": "moderator: [{from: $START, to: inner}, {from: inner, to: $END}]",
}


def find_by_name(name: str) -> UsedWorkflow:
    roles = ROLES if name == "flow" else "roles: {inner: {workflow: flow, outputSchema: true}}"
    text = f"name: {name}\n{roles}\n{FOUND[name]}\n"
    return used(text, Surroundings(find_used=find_by_name))


@pytest.mark.parametrize(
    ("nodes", "acted", "problem"),
    [
        (f'{WORK}when: "true"}}}}, {READ}"${{state.vOutput.t.length}}"}}', "w v r", None),
        (f'{WORK}when: "true", input: "${{state.wOutput.t.u.n}}"}}}}', "w", "no member 'n'"),
        (f"{WORK}when: meta.u.n}}}}", "w v", "no member 'n'"),
        (f"{{type: parallel, join: any, nodes: [{AGENT}w}}, {AGENT}v}}]}}", "w v", None),
        (
            f'{{type: workflow, use: flow, output: o}}, {READ}"${{state.o.t.length}}"}}',
            "w r r",
            None,
        ),
        (
            f'{{type: workflow, use: graph, output: o}}, {READ}"${{state.o.u.n}}"}}',
            "w r",
            "no member 'n'",
        ),
    ],
)
def test_verdicts_joins_and_used_workflows_are_those_of_the_engine(
    nodes: str, acted: str, problem: str | None
) -> None:
    text = f"name: x\n{ROLES}root: {{type: sequential, nodes: [{nodes}]}}\n"
    found = rehearse(read_flow_file(text, Surroundings(find_used=find_by_name)), "Do it.")
    assert (" ".join(found.roles), found.problem is None) == (acted, problem is None)
    assert (problem or "") in (found.problem or "")


def test_what_a_text_of_a_flow_is_told(golden: Callable[[str, str], None]) -> None:
    def tell(kind: Literal["expression", "template"], text: str, language: str, *names: str) -> str:
        return check_flow_text(FlowText(kind, text, language, names)) or "right"

    told = tell_cases(MADE_UP / "flow_texts.json", {"check_flow_text": tell})
    golden("engine/flow_texts.txt", told)


def test_least_value_fits() -> None:
    for schema, value in json.loads((MADE_UP / "schemas.json").read_text())["least"]:
        inside = {"type": "object", "required": ["in"], "properties": {"in": schema}}

        assert json.dumps(find_least(schema)) == json.dumps(value), schema
        if "$defs" not in str(schema):
            assert find_least(inside) == {"in": value}


def numbers(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    bounds = st.integers(-9, 9)
    least = st.fixed_dictionaries({"type": st.just(kind)}, optional={"minimum": bounds})
    return least | st.fixed_dictionaries({"type": st.just(kind), "exclusiveMinimum": bounds})


LEAVES = st.one_of(
    st.sampled_from([True, {}, {"type": "null"}, {"type": "boolean"}, {"enum": ["x", 1]}]),
    st.fixed_dictionaries({"type": st.just("string")}, optional={"minLength": st.integers(0, 5)}),
    numbers("integer"),
    numbers("number"),
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def of_fields(fields: dict[str, Any]) -> st.SearchStrategy[Any]:
        required = st.lists(st.sampled_from(sorted(fields)), unique=True) if fields else st.just([])
        return st.builds(
            lambda names: {"type": "object", "properties": fields, "required": names}, required
        )

    listed = {"type": st.just("array"), "items": inner, "minItems": st.integers(0, 3)}
    return (
        st.dictionaries(st.sampled_from("abc"), inner).flatmap(of_fields)
        | st.fixed_dictionaries(listed)
        | st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts})
    )


@given(st.recursive(LEAVES, containers, max_leaves=8))
def test_first_value_fits_whatever_the_schema_is_made_of(schema: Any) -> None:
    find_least(schema)
