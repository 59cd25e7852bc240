import io
import json
from types import SimpleNamespace

import pytest
from cli.program import Ran, Uwf
from commands.world import DEMO


def refused_unchanged(uwf: Uwf, verb: str, words: list[str], status: int, said: str) -> Ran:
    """Check that a verb is refused, and that its thread is as it was."""
    thread = uwf.begun()
    before = uwf.json("thread", "show", thread)
    ran = uwf("thread", verb, thread, *words).refused(status, said)
    assert uwf.json("thread", "show", thread) == before
    return ran


def test_wrong_usage_is_reported_and_change_nothing(uwf: Uwf) -> None:
    for words, status, said in [
        ([], 2, "there is nothing to change"),
        (["-m", "why"], 2, "there is nothing to change"),
        (["--max-steps", "0"], 2, "'0' is not a whole number, 1 or more; 'none' is no limit"),
        (["--agent", "nobody=x"], 1, "workflow demo has no role nobody"),
        (["--workflow", "nothing"], 1, "there is no workflow nothing"),
        (["--workflow", "./nowhere.yaml"], 1, "nowhere.yaml cannot be read"),
    ]:
        refused_unchanged(uwf, "amend", words, status, said)


def test_file_is_registered_only_if_the_thread_can_go_on_in_it(uwf: Uwf) -> None:
    thread = uwf.stepped()
    gone = uwf.file(DEMO.replace("writer", "author"), name="gone.yaml")
    mended = uwf.file(DEMO + "config: {maxSteps: 9}\n", name="mended.yaml")

    refused = uwf("thread", "amend", thread, "--workflow", gone)
    again = uwf("thread", "amend", thread, "--workflow", uwf.file())

    assert (refused.status, again.status) == (1, 1)
    assert "cannot stand at writer: workflow demo" in refused.err
    assert "has this workflow, these agents and limits already" in again.err
    (version,) = uwf.json("workflow", "history", "demo")
    amended = uwf.json("thread", "amend", thread, "--workflow", mended)
    newest, first = uwf.json("workflow", "history", "demo")
    assert (newest["workflow"], first) == (amended["workflow"], version)


def test_agent_that_is_not_found_here_is_noted(uwf: Uwf, thread: str) -> None:
    more = uwf.file(
        "agentOverrides: {writer: nobody}\nroles: {more: {systemPrompt: x}}\n"
        "moderator:\n  - {from: checker, to: more}\n  - {from: more, to: $END}\n",
        name="more.yaml",
    )

    for words in (["amend", thread, "--agent", "writer=nobody"], ["append", thread, more]):
        ran = uwf("thread", *words)
        ran.says(0, "note: agent command 'nobody' is not on the PATH, and is to play writer; ")


def test_settings_that_are_not_named_stay(uwf: Uwf) -> None:
    agent = uwf.agent()
    thread = uwf.begun(json.dumps({"command": agent, "timeout": 60, "env": {"A": "1", "B": "2"}}))

    amended = uwf.json(
        "thread", "amend", thread, "--agent", 'checker={"timeout": 90, "env": {"A": null}}'
    )

    assert amended["agents"] == {"checker": agent}
    assert amended["agentSettings"] == {"checker": {"timeout": 90, "env": {"B": "2"}}}
    assert '"timeout": 90' in uwf("thread", "read", thread).out


def test_command_for_every_role_leaves_the_person_of_the_file_but_not_in_a_step(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file(DEMO + "agentOverrides: {checker: human}\n"))
    mine = uwf.agent('echo \'{"meta": {"text": "x", "ok": true}}\'')
    started = uwf("thread", "start", "demo", "-p", "x", "--agent", mine)
    assert "note: checker is left to its person or check; `--agent checker=CMD`" in started.err
    thread = json.loads(started.out)["thread"]

    amended = uwf("thread", "amend", thread, "--agent", f"{mine} -v")
    again = uwf("thread", "amend", thread, "--agent", f"{mine} -v")
    again.refused(1, "a command for every role leaves checker")
    assert json.loads(amended.out)["agents"] == {"writer": f"{mine} -v"}
    assert "note: checker is left to its person or check" in amended.err
    uwf.json("thread", "step", thread)
    assert uwf.json("thread", "step", thread, "--agent", mine)["role"] == "checker"


def test_options_of_a_step_that_is_not_taken_are_refused(uwf: Uwf, thread: str) -> None:
    head = uwf.json("thread", "step", thread)["head"]

    for option in (("--agent", "x"), ("--workdir", "/"), ("--trust",)):
        uwf("thread", "poke", thread, "--no-step", *option).refused(2, "--no-step takes none")

    assert uwf.json("thread", "show", thread)["head"] == head


def test_poke_that_is_refused_takes_nothing_back(uwf: Uwf, thread: str) -> None:
    head = uwf.json("thread", "step", thread)["head"]

    uwf("thread", "poke", thread, "--workdir", "nowhere").refused(1, "nowhere is not there")

    assert uwf.json("thread", "show", thread)["head"] == head


FLOW = """\
name: flow
root: {type: parallel, id: checks, nodes: [{type: agent, agentId: one, output: said}]}
"""


def test_what_may_be_a_mistake_in_appended_nodes_is_told(uwf: Uwf) -> None:
    thread = uwf.begun("nobody", workflow=FLOW)
    loop = uwf.file("- type: loop\n  nodes: [{type: agent, agentId: two}]\n", name="loop.yaml")
    branch = uwf.file("nodes:\n  - {type: agent, agentId: too, output: said}\n", name="b.yaml")

    looped = uwf("thread", "append", thread, loop)
    branched = uwf.json("thread", "append", thread, branch, "--to", "checks")

    told = "loop.yaml:1: [0]: no maxIterations is set, so the loop ends after 100 passes"
    assert looped.err.splitlines()[0].endswith(told)
    (warning,) = branched["warnings"]
    assert warning["message"].startswith("'said' is set by nodes[0], nodes[1]")
    assert "maxIterations" not in uwf("thread", "append", thread, loop, "--format", "text").out


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 2, "missing argument 'FILE'"),
        (["nowhere.yaml"], 1, "nowhere.yaml cannot be read"),
        (["demo.yaml", "--to", "x"], 1, "leave --to out"),
        (["demo.yaml"], 1, "demo.yaml: the workflow has 2 problems"),
        (["demo.yaml"], 1, "cannot be appended: it belongs to the whole workflow"),
    ],
)
def test_wrong_usage_is_reported_and_change_nothing_append(
    words: list[str], status: int, said: str, uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(uwf.place)
    refused_unchanged(uwf, "append", words, status, said)


def state(uwf: Uwf, thread: str) -> object:
    return uwf.json("thread", "context", thread)["state"]


def test_patch_is_read_from_a_file_or_from_standard_input(
    uwf: Uwf, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uwf.json("thread", "patch", thread, "--file", uwf.file('{"from": "file"}', name="s.json"))
    assert state(uwf, thread) == {"from": "file"}

    for words in (["-"], ["--file", "-"]):
        stdin = SimpleNamespace(buffer=io.BytesIO(b'{"from": "stdin"}'))
        monkeypatch.setattr("uwf_git.cli.app.parameters.sys.stdin", stdin)
        uwf.json("thread", "patch", thread, *words)
        assert state(uwf, thread) == {"from": "stdin"}
        uwf.json("thread", "patch", thread, '{"from": null}')


def test_invalid_patch_changes_nothing(uwf: Uwf) -> None:
    for words, status, told in [
        ([], 2, "the patch is missing"),
        (["{}", "--file", "x"], 2, "the patch is given twice"),
        (["{"], 2, "the patch is not JSON"),
        (["[1]"], 2, "the patch is not an object"),
        (["{}"], 2, "the patch is empty"),
        (["--file", "no-such-file"], 1, "no-such-file cannot be read"),
        (['{"a": "\\ud800"}'], 1, "surrogate"),
        (['{"a": 1' + "0" * 400 + "}"], 1, ""),
    ]:
        assert refused_unchanged(uwf, "patch", words, status, told).err.startswith("error: ")
