"""Failures of agents in an engine of the same design, which cannot happen here.

DECISIONS.md, "What went wrong elsewhere", lists all of it, and where each is held; here is
what no test of a single part shows.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agentkit.adapters.test_programs import PROGRAMS
from agentkit.conftest import DOCUMENT, MakeContext, Turn
from commands.world import DEMO
from hypothesis import given
from hypothesis import strategies as st
from programs import write_program

from uwf_git.agentkit.ladder import extract_meta
from uwf_git.agentkit.programs.command import CommandAdapter
from uwf_git.agentkit.turn import AdapterQuestion
from uwf_git.agents.command_line import parse_reply
from uwf_git.engine.prompt import build_prompt
from uwf_git.engine.turn_context import parse_context
from uwf_git.model.yaml_reader import parse_yaml
from uwf_git.model.yaml_render import render_yaml

WORKFLOW = DEMO.replace("meta.ok = false", "meta.ok = false and depth < 6")

Run = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the workflow with a writer that is a shell script; return the steps."""
    world = Turn(tmp_path, "")
    (tmp_path / "mend.yaml").write_text(WORKFLOW)

    def play(script: str) -> list[dict[str, Any]]:
        writer = write_program(tmp_path / "writer", script)
        world.uwf("init", f"{tmp_path}/store.git")
        shell = f"{sys.executable} -m uwf_git.agentkit.adapters shell 'test -f mended.txt'"
        agents = ("--agent", f"writer={writer}", "--agent", f"checker={shell}")
        thread = world.uwf("run", "mend.yaml", "-p", "Mend it.", *agents)["thread"]
        steps: list[dict[str, Any]] = world.uwf("thread", "show", thread, "--full")["steps"]
        return steps

    return play


CLAIM = """echo '{"meta": {"text": "done"}, "content": "Done: https://example.com/pull/17"}'"""


def test_work_that_was_only_claimed_is_found_out_by_a_role_that_looks(run: Run) -> None:
    steps = run(f"[ -f begun ] && touch mended.txt; touch begun; {CLAIM}")

    assert [(step["role"], step["meta"].get("ok")) for step in steps] == [
        ("writer", None),
        ("checker", False),
        ("writer", None),
        ("checker", True),
    ]


def test_two_roles_that_never_agree_come_to_an_end(run: Run) -> None:
    assert len(run(CLAIM)) == 6


AGENT = """\
import sys
from uwf_git.agentkit import create_agent

def count(context):
    with open("told", "a") as told:
        error = context.last_error
        print(context.visit, context.attempt, error and error.message, sep="|", file=told)
    return "---\\nwords: 3\\n---\\n" if context.attempt == 3 else "I have counted them."

sys.exit(create_agent(count)())
"""


def test_next_try_knows_the_last_one_s_error_and_goes_on_in_its_directory(turn: Turn) -> None:
    (turn.place / "agent.py").write_text(AGENT)
    agent = ("--agent", f"{sys.executable} agent.py")
    thread = turn.uwf("thread", "start", "count-words", "-p", "Count.", *agent)["thread"]
    turn.uwf("config", "set", "retries", "2")

    tries = [turn.python("-m", "uwf_git", "thread", "step", thread).status for _ in range(3)]

    assert tries == [3, 3, 0]
    told = [line.split("|") for line in (turn.place / "told").read_text().splitlines()]
    assert [(visit, attempt) for visit, attempt, _ in told] == [("1", "1"), ("1", "2"), ("1", "3")]
    assert told[0][2] == "None"
    assert all("no fields that fit the role's schema" in error for _, _, error in told[1:])


words = st.text("abcxyz :#-'\"[]{}|>&*!%@,\n\tné", max_size=40)


@given(
    meta=st.dictionaries(st.sampled_from(["$status", "text", "no", "n"]), words | st.booleans()),
    content=words,
)
def test_fields_of_an_agent_are_read_alike_by_engine_and_kit(
    meta: dict[str, Any], content: str
) -> None:
    answer = f"---\n{render_yaml(meta)}---\n{content}"

    by_engine = parse_reply(answer.encode(), protocol="positional")
    by_kit = extract_meta(answer, {"type": "object"})

    assert (by_engine.meta, by_engine.content) == (by_kit.meta, by_kit.content) == (meta, content)


names = st.sampled_from(["$status", "status", "with space", "no", "é", "a-b", "1", "x: y", "#z"])
constants = st.sampled_from(["ready", "true", "no", "12:30", "", "a: b", "#c", 3, 2.5, True, None])


@given(st.dictionaries(names, constants, min_size=1))
def test_answer_that_is_copied_from_the_prompt_fits(fields: dict[str, Any]) -> None:
    schema = {
        "type": "object",
        "properties": {name: {"const": value} for name, value in fields.items()},
        "required": list(fields),
        "additionalProperties": False,
    }
    role = {"name": "r", "description": "", "systemPrompt": "", "outputSchema": schema}
    prompt = build_prompt(parse_context(DOCUMENT | {"role": role}))
    template = prompt.partition("It looks like this:\n\n")[2].partition("\n\nThe fields")[0]

    assert extract_meta(template, schema).meta == fields


@given(words, st.integers(2, 4))
def test_same_value_in_several_places_is_written_out_in_each(text: str, times: int) -> None:
    shared = {"text": text, "list": [text]}

    written = render_yaml([shared] * times)

    assert parse_yaml(written).value == [shared] * times
    assert "&id" not in written


@pytest.mark.parametrize("adapter", PROGRAMS, ids=lambda each: each.name)
@pytest.mark.parametrize("session", [None, "s1"])
@pytest.mark.parametrize("is_structured", [True, False])
def test_every_program_gets_the_whole_prompt(
    adapter: CommandAdapter,
    session: str | None,
    *,
    is_structured: bool,
    context: MakeContext,
    tmp_path: Path,
) -> None:
    known = context()
    prompt = build_prompt(known)
    schema = known.current_role.output_schema if is_structured else None
    settings = {"command": "any"}

    question = AdapterQuestion(prompt=prompt, schema=schema, session=session, settings=settings)
    command = adapter.build(question, str(tmp_path))

    left = [path.read_text() for path in tmp_path.iterdir()]
    # A recipe of goose is JSON, in which no brace may stand as such.
    recipes = [str(json.loads(each)["prompt"]) for each in left if each.startswith('{"version"')]
    assert any(prompt in each for each in (command.given, *command.argv, *left, *recipes))


def test_agent_has_nothing_to_look_up_before_it_begins(turn: Turn) -> None:
    ran = turn.python("-m", "uwf_git", "thread", "context", turn.thread, "--prompt")

    assert "one two three" in ran.out
    assert "Count the words." in ran.out
    assert "You work in the directory /" in ran.out
    assert "words: <" in ran.out
