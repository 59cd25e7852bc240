"""What our containers answer to the conformance test kit of Serverless Workflow."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pytest
import yaml
from commands.turns import drive
from commands.world import World, fails, replied

from uwf_git.commands.turn.flow import fill_input
from uwf_git.commands.turn.turn import Played, Turn

HERE = Path(__file__).parent / "serverless_workflow"
PAGE = Path(__file__).parents[2] / "docs" / "serverless-workflow.md"
TRANSLATIONS = yaml.safe_load((HERE / "translations.yaml").read_text(encoding="utf-8"))
VERDICTS = ("equal", "different", "cannot say")


class Scenario(NamedTuple):
    """A scenario of the kit: its input, and the sentences that have to hold."""

    given: dict[str, Any]
    sentences: list[tuple[str, Any]]
    """Each with the value below it, if it has one."""


class Run(NamedTuple):
    """What a translation came to."""

    stopped: str
    steps: list[str]
    output: Any
    error: Any


# A step of a scenario, with or without a value below it.
STEP = re.compile(
    r"""^\ *(?:Given|When|Then|And)(?:\ given)?\ ([^\n]+?):?\n
        (?:\ *"{3}yaml\n(.*?)\n\ *"{3})?""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)


def read_scenarios() -> Iterator[tuple[str, Scenario]]:
    """Read the scenarios of all features."""
    for path in sorted((HERE / "features").glob("*.feature")):
        for text in path.read_text(encoding="utf-8").split("Scenario: ")[1:]:
            name, _, body = text.partition("\n")
            found = STEP.findall(body + "\n")
            steps = {step: yaml.safe_load(dedent(value)) for step, value in found}
            ran = list(steps).index("the workflow is executed")
            given = steps.get("the workflow input is", {})
            yield name, Scenario(given, list(steps.items())[ran + 1 :])


SCENARIOS = dict(read_scenarios())


def find(value: Any, path: str) -> Any:
    """Return the member of *value* at a path of names; None if there is none."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def holds(sentence: str, value: Any, run: Run) -> bool:
    """Tell whether *sentence*, with *value* below it, is true of *run*."""
    subject, _, demand = sentence.partition(" should ")
    paths = re.findall("'(.*?)'", sentence)
    match demand.split():
        case ["complete", *more]:
            held = run.stopped == "end" and (not more or run.output == value)
        case ["fault", *more]:
            held = run.stopped == "failed" and (not more or run.error == value)
        case ["run", "first"]:
            held = run.steps[:1] == [subject]
        case ["run", "last"]:
            held = run.steps[-1:] == [subject]
        case ["run", "after", task]:
            held = run.steps.index(subject) > run.steps.index(task)
        case ["have", "properties", *_]:
            held = all(find(run.output, path) is not None for path in paths)
        case ["have", "a", _, "property", "with", "value"]:
            held = find(run.output, paths[0]) == value
        case ["have", "a", _, "property", "containing", count, "items"]:
            held = len(find(run.output, paths[0])) == int(count)
        case _:
            raise AssertionError(sentence)
    return held


def run(world: World, translation: dict[str, Any], given: dict[str, Any]) -> Run:
    """Run a translation with scripted agents."""
    agents = translation.get("agents", {})

    def play(turn: Turn) -> Played:
        script = agents.get(turn.role, {})
        if "fails" in script:
            return fails(script["fails"])(turn)
        if turn.place is None:
            colors = find(turn.present.state, "output.colors") or []
            answer = {"colors": [*colors, script["adds"]]}
            return replied(answer, state={"output": answer})
        return replied(script.get("answers") or fill_input(turn.snapshot, turn.present, turn.place))

    source: dict[str, Any] = {"name": "scenario", "description": "A scenario of the kit."}
    if "root" in translation:
        source |= {"root": translation["root"], "language": "jsonata", "initialState": given}
    else:
        source |= {"moderator": translation["moderator"]}
        source["roles"] = {role: {"systemPrompt": "Set.", "outputSchema": True} for role in agents}
    thread = world.begun(json.dumps(source))
    driven, steps = drive(world, thread, play, jobs=3)
    world.assert_sound(thread)
    snapshot = world.snapshot(thread)
    present = snapshot.get_present()
    output = present.state.get("output", present.state)
    last = present.last_attempt
    error = None if last is None else snapshot.get_node(last).payload["error"]
    return Run(driven.stopped, steps, output, error)


def is_translated(name: str) -> bool:
    return not {"root", "moderator"}.isdisjoint(TRANSLATIONS[name])


def judge(name: str) -> str:
    """Return the verdict on a scenario."""
    if not is_translated(name):
        return "cannot say"
    return "different" if "misses" in TRANSLATIONS[name] else "equal"


def test_every_scenario_has_a_verdict() -> None:
    assert list(TRANSLATIONS) == list(SCENARIOS)
    assert len(SCENARIOS) == 21


@pytest.mark.parametrize("name", [*filter(is_translated, TRANSLATIONS)])
def test_what_a_scenario_gives(name: str, world: World) -> None:
    scenario, translation = SCENARIOS[name], TRANSLATIONS[name]

    ran = run(world, translation, scenario.given)

    missed = [text for text, value in scenario.sentences if not holds(text, value, ran)]
    assert missed == translation.get("misses", [])
    if "gives" in translation:
        assert (ran.error if ran.stopped == "failed" else ran.output) == translation["gives"]


def test_the_page_says_what_is_tested(request: pytest.FixtureRequest) -> None:
    verdicts = {name: judge(name) for name in SCENARIOS}
    counts = [f"{[*verdicts.values()].count(verdict)} {verdict}" for verdict in VERDICTS]
    written = PAGE.read_text(encoding="utf-8").partition("| scenario ")[0]
    written += f"| scenario | {', '.join(counts)} | how, or why |\n|---|---|---|\n"
    for name, verdict in verdicts.items():
        written += f"| {name} | {verdict} | {TRANSLATIONS[name]['reason']} |\n"
    if request.config.getoption("--update-golden"):
        PAGE.write_text(written, encoding="utf-8")

    assert PAGE.read_text(encoding="utf-8") == written, "pytest --update-golden writes it"
