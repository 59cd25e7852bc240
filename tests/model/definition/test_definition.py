"""Containers in workflow files: the six of the seed, and what each part means."""

from pathlib import Path
from typing import Any

import pytest
from refusing import refuses
from workflow_file import SOUND, problems_of, read, read_flow_file, spoiled, used

from uwf_git.errors import Problem
from uwf_git.model.builtin import FLOW, WORKFLOW, reference
from uwf_git.model.definition.definition import (
    AgentSpec,
    Definition,
    Findings,
    InvalidWorkflow,
    Surroundings,
    UsedWorkflow,
)
from uwf_git.model.definition.roles import read_agent_settings
from uwf_git.model.flow import MAX_LEVELS, MAX_NESTING, MAX_NODES
from uwf_git.model.node import build_node
from uwf_git.model.workflow import build_workflow, parse_flow_node, parse_workflow
from uwf_git.model.yaml_reader import parse_yaml


def test_agent_may_say_more_than_its_command() -> None:
    agent = "{command: a, protocol: flags, timeout: 1.5, retries: 0, env: {LANG: C}}"
    assert read(f"{SOUND}defaultAgent: {agent}\n").default_agent == AgentSpec(
        "a", protocol="flags", timeout=1.5, retries=0, env={"LANG": "C"}
    )


def test_command_may_be_a_block_with_a_script_in_quotes() -> None:
    agent = read(
        SOUND + "defaultAgent: |\n  uwf-shell '\n  make\n  \tmake test\n  '\n"
    ).default_agent
    assert agent == AgentSpec("uwf-shell '\nmake\n\tmake test\n'")


def found(findings: Findings) -> tuple[Problem, ...]:
    with pytest.raises(InvalidWorkflow) as caught:
        findings.raise_if_any()
    return caught.value.problems


@pytest.mark.parametrize(
    ("inner", "path", "line"),
    [
        ("", "s", 1),
        ("type", "s.type", 2),
        ('["x.y"]', 's["x.y"]', 3),
        ('["x.y"].z', 's["x.y"].z', 4),
        ("list[1].w", "s.list[1].w", 7),
        ("list[9]", "s.list[9]", 5),
        ("[0]", "s[0]", 1),
        ("gone.deep", "s.gone.deep", 1),
    ],
)
def test_place_below_a_value_has_its_line(inner: str, path: str, line: int) -> None:
    findings = Findings(parse_yaml("s:\n  type: 1\n  x.y:\n    z: 2\n  list:\n  - 3\n  - w: 4\n"))
    findings.add_below(("s",), Problem(inner, "is wrong"))
    assert found(findings) == (Problem(path, "is wrong", line),)


def test_file_with_endless_problems_is_given_up() -> None:
    keys = "\n".join(f"wrong{number}: 1" for number in range(50_000))
    assert len(problems_of(SOUND + keys)) == 200


def test_hostile_names_do_not_make_the_search_for_the_nearest_long() -> None:
    roles = "\n".join(f"  {'r' * 9}{number}: {{}}" for number in range(20_000))
    moderator = "\n".join(f"- {{from: {'s' * 9}{n}, to: {'t' * 9}{n}}}" for n in range(5_000))
    assert len(problems_of(f"name: x\nroles:\n{roles}\nmoderator:\n{moderator}")) == 200


FLOWS = sorted((Path(__file__).parents[2] / "flows").glob("*.yaml"))
TABLES = {
    "coder-review-loop": "0:loop 0/0:sequential 0/0/0:coder 0/0/1:parallel 0/0/1/0:reviewer "
    "0/0/1/1:tester 0/0/2:decision-maker 0/0/3:state-updater",
    "for-each-feature": "0:sequential 0/0:planner 0/1:loop 0/1/0:loop 0/1/0/0:coder "
    "0/1/0/1:reviewer 0/1/1:parallel 0/1/1/0:tester 0/1/1/1:doc-writer",
    "level-1": "0:loop 0/0:worker",
    "level-2": "0:loop 0/0:sequential 0/0/0:coder 0/0/1:reviewer",
    "level-3": "0:loop 0/0:sequential 0/0/0:coder 0/0/1:parallel 0/0/1/0:reviewer 0/0/1/1:tester",
    "level-4": "0:sequential 0/0:planner 0/1:loop 0/1/0:feature-picker 0/1/1:loop "
    "0/1/1/0:sequential 0/1/1/0/0:coder 0/1/1/0/1:reviewer",
}


def nodes_of(definition: Definition) -> dict[str, Any]:
    assert definition.flow is not None
    return {place: dict(fields) for place, fields in definition.flow.nodes.items()}


@pytest.mark.parametrize("path", FLOWS, ids=lambda path: path.stem)
def test_the_examples_of_the_seed_are_taken_as_they_are(path: Path) -> None:
    definition = read_flow_file(path.read_text(), Surroundings(path.stem))
    table = [
        f"{place}:{fields.get('agentId', fields['type'])}"
        for place, fields in nodes_of(definition).items()
    ]
    assert definition.name == path.stem
    assert " ".join(table) == TABLES[path.stem]
    node, closure = build_workflow(definition, timestamp=0)
    flow = next(each for each in closure if each.hash == parse_workflow(node).flow)
    assert {place: {"type": n.kind, **n.fields} for place, n in parse_flow_node(flow).nodes.items()}
    assert list(parse_workflow(node).roles) == list(parse_flow_node(flow).roles)


def test_the_examples_give_one_warning_of_the_bound_that_is_missing() -> None:
    found = [
        (path.stem, warning.line, warning.path, warning.message)
        for path in FLOWS
        for warning in read_flow_file(path.read_text(), Surroundings(path.stem)).warnings
    ]
    message = "no maxIterations is set, so the loop ends after 100 passes"
    assert found == [("for-each-feature", 9, "nodes[1]", message)]


EVERY_FIELD = """\
name: x
language: jsonata
root:
  type: sequential
  id: all
  nodes:
    - {type: agent, agentId: a, input: {text: '${state.a}'}, output: o, onError: continue}
    - type: conditional
      condition: state.a = 1
      nodes: [{type: agent, agentId: a, timeout: 1.5, retries: 2}]
      else: [{type: agent, agentId: b, description: words, name: n}]
    - type: map
      over: ${state.list}
      as: one
      output: all
      merge: {log: append, '*': last}
      join: any
      tolerate: 0
      nodes: [{type: agent, agentId: a, input: '${one}'}]
    - {type: loop, condition: state.a, maxIterations: 3, onExhausted: stop,
       nodes: [{type: agent, agentId: a}]}
"""


def test_every_field_is_kept_as_it_is_written() -> None:
    definition = read_flow_file(EVERY_FIELD)
    assert definition.flow is not None
    assert definition.flow.language == "jsonata"
    assert nodes_of(definition) == {
        "0": {"type": "sequential", "id": "all"},
        "0/0": {
            "type": "agent",
            "onError": "continue",
            "agentId": "a",
            "input": {"text": "${state.a}"},
            "output": "o",
        },
        "0/1": {"type": "conditional", "condition": "state.a = 1"},
        "0/1/0": {"type": "agent", "retries": 2, "timeout": 1.5, "agentId": "a"},
        "0/1/e0": {"type": "agent", "name": "n", "description": "words", "agentId": "b"},
        "0/2": {
            "type": "map",
            "over": "${state.list}",
            "as": "one",
            "output": "all",
            "join": "any",
            "merge": {"log": "append", "*": "last"},
            "tolerate": 0,
        },
        "0/2/0": {"type": "agent", "agentId": "a", "input": "${one}"},
        "0/3": {"type": "loop", "condition": "state.a", "maxIterations": 3, "onExhausted": "stop"},
        "0/3/0": {"type": "agent", "agentId": "a"},
    }


def test_each_text_is_checked_with_its_names() -> None:
    asked: list[tuple[str, str, tuple[str, ...]]] = []
    text = """\
name: x
root:
  type: map
  over: state.a
  nodes:
    - type: map
      over: item.b
      as: inner
      nodes: [{type: agent, agentId: a, input: {deep: [1, 'a ${inner}']}}]
    - {type: loop, condition: '1', maxIterations: '${item}', nodes: [{type: agent, agentId: a}]}
"""

    def check(each: Any) -> str | None:
        asked.append((each.kind, each.text, each.names))
        return "is wrong" if each.text == "item.b" else None

    problems = problems_of(text, Surroundings(check_text=check))
    assert asked == [
        ("expression", "state.a", ()),
        ("expression", "item.b", ("item",)),
        ("template", "a ${inner}", ("item", "inner")),
        ("expression", "1", ("item",)),
        ("template", "${item}", ("item",)),
    ]
    assert problems == [(7, "root.nodes[0].over", "is wrong")]


def test_a_workflow_cannot_contain_itself() -> None:
    inner = used("name: inner\nroot: {type: agent, agentId: b}\n")
    around = Surroundings(find_used=lambda _name: inner)
    known = used("name: outer\nroot: {type: workflow, use: inner}\n", around)

    direct = problems_of("name: x\nroot:\n  type: workflow\n  use: x\n", around)
    through = problems_of(
        "name: inner\nroot: {type: workflow, use: outer}\n",
        Surroundings(find_used=lambda _name: known),
    )

    assert direct == [(4, "root.use", "workflow x cannot contain itself")]
    assert through == [(2, "root.use", "workflow inner cannot contain itself: outer contains it")]


def test_a_flow_that_is_no_table_can_neither_be_a_node_nor_play_a_role() -> None:
    flow = build_node(FLOW, {"nodes": {}}, timestamp=0)
    payload = {"name": "odd", "description": "", "roles": {}, "flow": reference(flow.hash)}
    odd = build_node(WORKFLOW, payload, timestamp=0)
    around = Surroundings(find_used=lambda _name: UsedWorkflow(odd.hash, [odd, flow]))
    moves = "[{from: $START, to: a}, {from: a, to: $END}]"
    role = f"name: x\nroles: {{a: {{workflow: odd}}}}\nmoderator: {moves}\n"

    for text in ("name: x\nroot: {type: workflow, use: odd}\n", role):
        ((line, _path, message),) = problems_of(text, around)
        assert line == 2
        assert message.startswith("workflow odd cannot be read: 0 nodes")


def test_threads_nest_at_most_sixteen_deep() -> None:
    def nested(count: int) -> str:
        return "{type: parallel, nodes: [" * count + "{type: agent, agentId: a}" + "]}" * count

    assert read_flow_file(f"name: x\nroot: {nested(16)}\n").name == "x"
    ((line, path, message),) = problems_of(f"name: x\nroot: {nested(17)}\n", Surroundings())
    assert (line, path.count("nodes")) == (2, 16)
    assert message == "17 threads would lie in one another; at most 16"

    inner = used(f"name: inner\nroot: {nested(10)}\n")
    around = Surroundings(find_used=lambda _name: inner)
    fits = "{type: parallel, nodes: [" * 5 + "{type: workflow, use: inner}" + "]}" * 5
    assert read_flow_file(f"name: x\nroot: {fits}\n", around).name == "x"
    deep = f"name: x\nroot: {{type: parallel, nodes: [{fits}]}}\n"
    assert [each[2] for each in problems_of(deep, around)] == [message]


def test_a_flow_has_at_most_so_many_nodes_and_levels() -> None:
    def wide(count: int) -> str:
        return "name: x\nroot:\n  type: sequential\n  nodes:\n" + (
            "  - {type: agent, agentId: a}\n" * (count - 1)
        )

    assert len(nodes_of(read_flow_file(wide(MAX_NODES)))) == MAX_NODES
    told = "is one node too many: at most 1,000 are allowed"
    at = f"root.nodes[{MAX_NODES - 1}]"
    assert problems_of(wide(MAX_NODES + 3), Surroundings()) == [(MAX_NODES + 4, at, told)]

    def deep(count: int) -> str:
        around = "{type: sequential, nodes: [" * (count - 1)
        return f"name: x\nroot: {around}{{type: agent, agentId: a}}{']}' * (count - 1)}\n"

    assert len(nodes_of(read_flow_file(deep(MAX_LEVELS)))) == MAX_LEVELS
    ((_line, _path, message),) = problems_of(deep(MAX_LEVELS + 2), Surroundings())
    assert message == "is nested deeper than 32 levels"


def test_a_bare_container_has_the_name_of_its_file_unless_it_says_one() -> None:
    bare = "type: agent\nagentId: a\n"
    assert read_flow_file(bare, Surroundings("work")).name == "work"
    named = read_flow_file(f"name: mine\ndescription: d\n{bare}", Surroundings("work"))
    assert (named.name, named.description) == ("mine", "d")
    assert nodes_of(named) == {"0": {"type": "agent", "agentId": "a"}}
    assert problems_of(bare) == [(1, "", "'name' is missing")]
    assert "cannot be a workflow's name" in problems_of(bare, Surroundings("a b"))[0][2]


ROLES = """\
name: x
roles:
  reviewer: {outputSchema: {properties: {verdict: {}, notes: {}}}}
  tester: {outputSchema: {properties: {verdict: {}, passed: {}}}}
  coder: {outputSchema: {properties: {code: {}}}}
root:
"""
REVIEWER, TESTER = "{type: agent, agentId: reviewer}", "{type: agent, agentId: tester}"
CODER = "{type: agent, agentId: coder}"
SAYS = "roles: {a: {outputSchema: {properties: {n: {}}}}, b: {outputSchema: {properties: {t: {}}}}}"
BOTH = "nodes: [{type: agent, agentId: a}, {type: agent, agentId: b}]"
WAYS = "[{from: $START, to: a}, {from: a, to: b}, {from: b, to: $END}]"
USED = {
    "inner": f"{SAYS}\nroot: {{type: sequential, {BOTH}}}",
    "graph": f"{SAYS}\nmoderator: {WAYS}",
    "joins": f"{SAYS}\nroot: {{type: parallel, {BOTH}}}",
}


def use(name: str) -> str:
    return f"{{type: workflow, use: {name}, output: code}}"


def find_by_name(name: str) -> UsedWorkflow:
    return used(f"name: {name}\n{USED[name]}\n")


def warnings_of(found: Definition) -> list[tuple[int | None, str, str]]:
    return [(each.line, each.path, each.message) for each in found.warnings]


def warnings(text: str) -> list[tuple[int | None, str, str]]:
    return warnings_of(read_flow_file(text, Surroundings(find_used=find_by_name)))


@pytest.mark.parametrize(
    ("fields", "nodes", "keys"),
    [
        ("merge: last", f"{REVIEWER}, {TESTER}", []),
        ("merge: {verdict: collect}", f"{REVIEWER}, {TESTER}", []),
        ("merge: {notes: last}", f"{REVIEWER}, {TESTER}", ["verdict"]),
        ("join: any", f"{REVIEWER}, {TESTER}", []),
        ("join: all", f"{REVIEWER}, {CODER}", []),
        ("join: all", f"{CODER}, {CODER}", ["code", "coderOutput"]),
        (
            "join: all",
            f"{TESTER}, {{type: conditional, condition: a, nodes: [{CODER}], else: [{REVIEWER}]}}",
            ["verdict"],
        ),
        ("join: all", f"{TESTER}, {{type: map, over: a, nodes: [{REVIEWER}]}}", []),
        *(
            (
                "join: all",
                f"{TESTER}, {{type: map, over: a, merge: {policy}, nodes: [{REVIEWER}]}}",
                ["verdict"],
            )
            for policy in ("last", "{verdict: last}", "{'*': last, notes: first}")
        ),
        ("join: all", f"{use('inner')}, {use('inner')}", ["t", "code"]),
        ("merge: {code: last}", f"{use('graph')}, {use('inner')}", ["t"]),
        (
            "merge: {code: last}",
            f"{use('joins')}, {use('joins')}",
            ["t", "bOutput", "n", "aOutput"],
        ),
    ],
)
def test_which_keys_branches_share(fields: str, nodes: str, keys: list[str]) -> None:
    found = warnings(f"{ROLES}  type: parallel\n  {fields}\n  nodes: [{nodes}]\n")
    assert [message.split("'")[1] for _line, _path, message in found] == keys


def test_a_policy_further_up_and_with_tries() -> None:
    root = (
        "{type: sequential, onError: continue, nodes: [{type: sequential, onError: stop, nodes: "
        f"[{{type: parallel, onError: retry, nodes: [{CODER}]}}]}}]}}"
    )
    ((_line, path, message),) = warnings(f"{ROLES.rstrip()} {root}\n")
    assert path == "root.nodes[0].nodes[0]"
    assert message.startswith("onError: continue of ")


GRAPH = """\
name: graph
roles: {a: {}}
moderator: [{from: $START, to: a}, {from: a, to: $END}]
"""


def test_a_chain_of_any_length_is_too_deep_and_no_crash() -> None:
    nodes = list(used(GRAPH).nodes)
    for number in range(2_000):
        place = {"type": "workflow", "use": "w", "workflow": reference(nodes[0].hash)}
        flow = build_node(FLOW, {"nodes": {"0": place}}, timestamp=0)
        payload = {
            "name": f"w{number}",
            "description": "",
            "roles": {},
            "flow": reference(flow.hash),
        }
        nodes[:0] = [build_node(WORKFLOW, payload, timestamp=0), flow]
    assert UsedWorkflow(nodes[0].hash, nodes).nesting() > MAX_NESTING


# Settings of an agent as they are typed: YAML or JSON, null removes.

CHECKER = "  checker:\n    outputSchema: {type: object, properties: {ok: {type: boolean}}}\n"


def checker(content: str) -> str:
    """Return the valid file with another checker; its content starts on line 6."""
    return spoiled(CHECKER, f"  checker:\n{content}\n")


@pytest.mark.parametrize("content", ["", "    {}", "    description:\n    systemPrompt: ~"])
def test_what_a_role_does_not_say_has_a_default(content: str) -> None:
    role = read(checker(content)).roles["checker"]
    assert (role.description, role.system_prompt, role.extract_prompt) == ("", "", None)
    assert role.output_schema == {"type": "object"}


def test_checks_are_commands_in_their_order() -> None:
    text = checker("    checks:\n      - make test\n      - |\n        sh -c 'a; b'\n")
    assert read(text).roles["checker"].checks == ("make test", "sh -c 'a; b'")


def test_null_stays_to_remove_a_setting() -> None:
    text = "{timeout: null, env: {A: null, B: b}}"

    assert read_agent_settings(text, name="f") == {"timeout": None, "env": {"A": None, "B": "b"}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[a]", "must be a command or a mapping with one, not a list"),
        ("{command: null}", "null cannot remove it"),
        ("{comand: x}", "did you mean 'command'?"),
        ("{retires: null}", "did you mean 'retries'?"),
        ("{timeout: -1}", "timeout: must be a number of seconds"),
        ("{protocol: flag}", "did you mean 'flags'?"),
        ("{env: {API_KEY: x}}", "API_KEY looks secret"),
        ("{env: {UWF_ROLE: x}}", "is set by uwf itself"),
        ("{timeout: a, retries: b}", r"(and 1 more)"),
    ],
)
def test_problems_are_listed(text: str, problem: str) -> None:
    with refuses("bad-agent") as caught:
        read_agent_settings(text, name="--agent x")

    assert caught.value.message.startswith("--agent x is no agent: ")
    assert problem in caught.value.message


def test_what_is_not_yaml_is_refused() -> None:
    for text in ('{"command": "a", "command": "b"}', '{"command": "a"', b"\xff"):
        with refuses("bad-agent", match="f is no agent: "):
            read_agent_settings(text, name="f")


FILE = """\
name: x
roles:
  a: {{outputSchema: {schema}}}
initialState: {{begun: 1}}
root:
  type: sequential
  nodes:
    - {{type: agent, agentId: a, output: said}}
    - type: map
      over: state.list
      as: each
      output: results
      nodes: [{{type: agent, agentId: a, input: {{deep: ["${{{asked}}}"]}}}}]
"""
CLOSED = "{type: object, properties: {list: {type: array}}, allOf: [{properties: {more: true}}]}"


def unset(asked: str, schema: str = CLOSED, language: str = "javascript") -> list[tuple[str, str]]:
    text = f"language: {language}\n" + FILE.format(asked=asked, schema=schema)
    return [(path, message) for _line, path, message in warnings_of(read(text))]


def test_what_something_sets_may_be_read() -> None:
    for key in [
        *("list", "more", "begun", "said", "results", "each", "eachIndex", "aOutput"),
        *("error", "errors", "outputs", "iteration", "parallel_0"),
    ]:
        assert unset(f"state.{key}") == []
    assert unset("state.list.filter(v => v.lost)") == []


def test_what_nothing_sets_is_told_with_its_place() -> None:
    place = "root.nodes[1].nodes[0].input.deep[0]"
    told = "nothing sets state.lists; did you mean 'list'?"
    assert unset("state.lists.length") == [(place, told)]
    for asked, language in [
        ("[1].map(x => state['lost'])", "javascript"),
        ("state.lost", "jsonata"),
    ]:
        assert [path for path, _ in unset(asked, language=language)] == [place]
    assert "no name 'False'" in unset("state.list = False", language="jsonata")[0][1]


VERIFIED = """\
name: x
language: {language}
roles:
  a: {{}}
  b: {{outputSchema: {schema}}}
root: {{type: agent, agentId: a, verifiedBy: {{agentId: b, when: "{when}"}}}}
"""


@pytest.mark.parametrize("language", ["javascript", "jsonata"])
def test_member_that_no_verdict_has_is_a_warning(language: str) -> None:
    def told(when: str, schema: str) -> list[tuple[int | None, str, str]]:
        return warnings_of(read(VERIFIED.format(language=language, when=when, schema=schema)))

    assert told("meta.lists", CLOSED) == [
        (*(6, "root.verifiedBy.when"), "the outputSchema of b has no 'lists'; did you mean 'list'?")
    ]
    assert told("meta.list.lost", CLOSED) == told("meta.more", CLOSED) == []
    for schema in ["true", "{$ref: '#/$defs/x', $defs: {x: true}}", "{anyOf: [{}, {}]}"]:
        assert told("meta.lost", schema) == []


@pytest.mark.parametrize(
    "schema",
    [
        "true",
        "{type: object}",
        "{$ref: '#/$defs/x', $defs: {x: true}}",
        "{properties: {a: {}}, additionalProperties: {type: string}}",
        "{properties: {a: {}}, if: {}, then: {properties: {lost: {}}}}",
        "{properties: {list: {}}, required: [lost]}",
    ],
)
def test_role_that_may_say_anything_may_set_anything(schema: str) -> None:
    assert unset("state.lost", schema) == []


def test_role_that_a_picture_shows_like_an_end_is_a_warning() -> None:
    assert warnings_of(read(SOUND.replace("writer", "end"))) == [
        (3, "roles.end", "a picture shows end of the graph alike; give the role another name")
    ]
