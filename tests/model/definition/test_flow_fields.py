import pytest
from workflow_file import problems_of, read_flow_file

from uwf_git.model.definition.definition import Surroundings
from uwf_git.model.definition.flow_fields import KEYS, kinds_with
from uwf_git.model.flow import HOLDING, KINDS

AGENT = "{type: agent, agentId: a}"
NODES = f"nodes: [{AGENT}]"


def test_the_types_are_those_of_flows() -> None:
    assert set(KEYS) == set(KINDS)
    assert {kind for kind in KEYS if "nodes" in KEYS[kind]} == HOLDING
    assert kinds_with("merge") == ["parallel", "map", "workflow"]


@pytest.mark.parametrize(
    ("fields", "key", "message"),
    [
        ("agentId: $END", "agentId", "it is an end of a graph"),
        ("agentId: a b", "agentId", "cannot be an agent's name"),
        ("agentId: 3", "agentId", "must be text, not a number"),
        ("output: iteration", "output", "iteration is set by uwf"),
        ("output: ''", "output", "must be one line of 1 to 200 characters"),
        ("input: 3", "input", "must be text or a mapping, not a number"),
        ('id: "a\\nb"', "id", "must be one line"),
        ("id: ' '", "id", "must be one line"),
        (f"name: {'a' * 201}", "name", "must be one line of 1 to 200 characters"),
        ("name: [a]", "name", "must be text, not a list"),
        ("description: 3", "description", "must be text"),
        ("onError: retries", "onError", "must be stop, continue or retry, not 'retries'"),
        ("onError: true", "onError", "must be stop, continue or retry, not true"),
        ("retries: -1", "retries", "must be a whole number, 0 or more"),
        ("retries: true", "retries", "must be a whole number"),
        ("timeout: 0", "timeout", "must be a number of milliseconds above 0"),
        ("timeout: 10s", "timeout", "must be a number of milliseconds"),
        ("retries: '2'", "retries", "or one as ${state.key}"),
        ("retries: 'up to ${state.n}'", "retries", "or one as ${state.key}"),
    ],
)
def test_fields_of_an_agent(fields: str, key: str, message: str) -> None:
    first = "" if fields.startswith("agentId") else "agentId: a, "
    assert_found(f"{{type: agent, {first}{fields}}}", key, message)


@pytest.mark.parametrize(
    ("fields", "key", "message"),
    [
        ("when: meta.ok", "", "'agentId' is missing"),
        ("agentId: v", "", "'when' is missing"),
        ("agentId: a, when: meta.ok", "agentId", "'a' does the work; name another agent"),
        ("agentId: $END, when: meta.ok", "agentId", "it is an end of a graph"),
        ("agentId: v, when: true", "when", "must be an expression, not true"),
        ("agentId: v, when: meta.ok, retries: 2", "retries", "unknown key 'retries'"),
        ("agentId: v, when: meta.ok, timeout: 0", "timeout", "above 0"),
        ("agentId: v, when: meta.ok, input: 3", "input", "must be text or a mapping"),
        ("agentId: v, when: meta.ok, output: iteration", "output", "is set by uwf"),
        ("agentId: v, when: meta.ok, inputFiles: a.md", "inputFiles", "must be a list of paths"),
        ("agentId: v, when: meta.ok, inputFiles: []", "inputFiles", "not an empty list"),
        ("agentId: v, when: meta.ok, inputFiles: ['']", "inputFiles[0]", "must be one line"),
    ],
)
def test_fields_of_a_verifier(fields: str, key: str, message: str) -> None:
    where = f"verifiedBy.{key}" if key else "verifiedBy"
    assert_found(f"{{type: agent, agentId: a, verifiedBy: {{{fields}}}}}", where, message)


def test_a_verifier_is_no_text() -> None:
    assert_found("{type: agent, agentId: a, verifiedBy: v}", "verifiedBy", "must be")


@pytest.mark.parametrize(
    ("fields", "key", "message"),
    [
        ("loop, condition: true", "condition", "must be an expression, not true"),
        ("loop, condition: ' '", "condition", "is empty"),
        ("loop, condition: [a]", "condition", "must be text, not a list"),
        ("loop, maxIterations: 0", "maxIterations", "must be a whole number of at least 1"),
        ("loop, maxIterations: '10'", "maxIterations", "or one as ${state.key}"),
        ("loop, maxIterations: 1.5", "maxIterations", "must be a whole number"),
        ("loop, onExhausted: stop", "onExhausted", "needs a condition"),
        ("loop, condition: a, onExhausted: retry", "onExhausted", "must be stop or continue"),
        ("loop, over: a, as: state", "as", "'state' cannot name an item"),
        ("loop, over: a, maxIterations: 2", "maxIterations", "ends after its last item"),
        ("loop, over: a, condition: b, onExhausted: stop", "onExhausted", "after its last item"),
        ("loop, as: plan", "as", "needs over"),
        ("conditional", "", "'condition' is missing"),
        ("map", "", "'over' is missing"),
        ("map, over: [a, b]", "over", "must be an expression, as \"['a', 'b']\""),
        ("map, over: a, as: state", "as", "'state' cannot name an item"),
        ("map, over: a, as: a-b", "as", "'a-b' cannot name an item"),
        ("map, over: a, as: 3", "as", "must be text"),
        ("parallel, join: some", "join", "must be all or any, not 'some'"),
        ("parallel, merge: newest", "merge", "must be error, first, last, collect or append"),
        ("parallel, merge: {a: newest}", "merge.a", "must be error, first"),
        ("parallel, merge: {iteration: last}", "merge.iteration", "iteration is set by uwf"),
        ("parallel, merge: [a]", "merge", "must be error, first"),
        ("parallel, tolerate: some", "tolerate", "must be a whole number"),
        (
            "sequential, isolation: worktree",
            "isolation",
            "is not for sequential, but for parallel, map",
        ),
        ("parallel, isolation: container", "isolation", "must be worktree, not 'container'"),
    ],
)
def test_fields_of_containers(fields: str, key: str, message: str) -> None:
    assert_found(f"{{type: {fields}, {NODES}}}", key, message)


@pytest.mark.parametrize(
    ("fields", "key", "message"),
    [
        ("use: w, timeout: 3", "timeout", "'timeout' is not for workflow, but for agent"),
        ("use: w, onError: retry", "onError", "is not tried again as a whole"),
        ("use: 3", "use", "must be text"),
    ],
)
def test_fields_of_a_used_workflow(fields: str, key: str, message: str) -> None:
    assert_found(f"{{type: workflow, {fields}}}", key, message)


def test_an_item_has_another_name_than_those_around_it() -> None:
    inner = f"{{type: map, over: a, as: one, {NODES}}}"
    found = problems_of(f"name: x\nroot: {{type: map, over: a, as: one, nodes: [{inner}]}}\n")
    assert [each[1] for each in found] == ["root.nodes[0].as"]


def test_a_name_has_up_to_200_characters() -> None:
    root = f"{{type: agent, agentId: a, name: {'é' * 200}}}"
    assert read_flow_file(f"name: x\nroot: {root}\n").flow is not None


def test_all_wrong_policies_are_told_at_once() -> None:
    text = f"name: x\nroot: {{type: parallel, merge: {{a: 1, b: 2}}, {NODES}}}\n"
    assert [path for _line, path, _message in problems_of(text, Surroundings())] == [
        "root.merge.a",
        "root.merge.b",
    ]


@pytest.mark.parametrize("bound", ["3", "${state.max}", "' ${state.max} '"])
def test_a_bound_is_a_number_or_a_template(bound: str) -> None:
    text = f"name: x\nroot:\n  type: loop\n  maxIterations: {bound}\n  {NODES}\n"
    assert read_flow_file(text).flow is not None


def assert_found(root: str, key: str, message: str) -> None:
    found = problems_of(f"name: x\nroot: {root}\n", Surroundings())
    path = f"root.{key}" if key else "root"
    assert [each for each in found if each[1] == path and message in each[2]], found
