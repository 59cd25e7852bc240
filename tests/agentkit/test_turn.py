import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agentkit.conftest import MakeContext, Turn
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases
from refusing import raising, refuses

from uwf_git import agentkit
from uwf_git.agentkit.ladder import NoMeta
from uwf_git.agentkit.running import complete
from uwf_git.agentkit.turn import (
    FAILURE,
    KEYS,
    PROMPT,
    SUBMITTED,
    AgentResult,
    AskFailed,
    extend_prompt,
    load_context,
    load_settings,
    open_trace,
    parse_arguments,
    parse_seconds,
    parse_words,
    print_result,
    read_submitted,
    write_failure,
    write_prompt,
)
from uwf_git.agents.command_line import parse_reply
from uwf_git.engine import turn_context
from uwf_git.errors import BadUsage, UwfError
from uwf_git.store.git.config import normal_name, set_config
from uwf_git.store.store import Store, create_store
from uwf_git.store.trust import describe_command, trust_agents

WORDS = Path(__file__).parent / "made_up" / "words.json"


def test_authors_have_every_name_that_a_context_is_made_of() -> None:
    own = {
        name: value
        for name, value in vars(turn_context).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == turn_context.__name__
    }

    # The public names are older than the names inside.
    public = {"NodeView": "Node", "RoleView": "Role", "WorkflowView": "Workflow"}
    public["TryView"] = "Try"

    assert {public.get(name, name) for name in own} <= set(agentkit.__all__)
    for name, value in own.items():
        assert getattr(agentkit, public.get(name, name)) is value


@given(text=st.text("ab\ud83d\ude00é"), session=st.none() | st.text(st.characters(codec="utf-8")))
def test_engine_reads_what_the_kit_prints(text: str, session: str | None) -> None:
    stream = io.BytesIO()
    print_result(AgentResult([text], text, session=session), stream)
    reply = parse_reply(stream.getvalue(), protocol="positional")

    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert (reply.meta, reply.content, reply.session) == ([whole], whole, session)


@pytest.mark.parametrize(
    ("meta", "problem"),
    [
        ({"n": float("nan")}, "not JSON compliant"),
        ({"s": {1, 2}}, "set is not JSON serializable"),
        ({(1, 2): 3}, "keys must be str"),
    ],
)
def test_value_that_json_does_not_have_is_reported_and_not_printed(meta: Any, problem: str) -> None:
    stream = io.BytesIO()

    with refuses("unprintable-result", match=problem):
        print_result(AgentResult(meta, ""), stream)

    assert stream.getvalue() == b""


def test_prompt_is_kept_with_what_an_adapter_put_after_it(tmp_path: Path) -> None:
    write_prompt(str(tmp_path), "Do it \ud800.\r\n")

    extend_prompt(str(tmp_path), "Mend it.", "Mend it. In JSON.")
    extend_prompt(str(tmp_path), "Do it \ud800.\r\n", "{}")
    assert (tmp_path / PROMPT).read_bytes() == b"Do it ?.\r\n"
    extend_prompt(str(tmp_path), "Do it \ud800.\r\n", "Do it \ud800.\r\nIn JSON.\n")

    assert (tmp_path / PROMPT).read_bytes() == b"Do it ?.\r\nIn JSON.\n"


def test_without_a_step_nothing_is_written(tmp_path: Path) -> None:
    write_prompt(None, "x")
    extend_prompt(None, "x", "x, in JSON")
    extend_prompt(str(tmp_path), "x", "x, in JSON")
    write_failure(None, {})
    with open_trace(None) as note:
        note({"type": "turn"})

    assert read_submitted(None) is None
    assert list(tmp_path.iterdir()) == []


def test_event_is_shortened_to_what_can_be_read(tmp_path: Path) -> None:
    deep: list[object] = []
    for _ in range(100):
        deep = [deep]

    with open_trace(str(tmp_path / "trace")) as note:
        note({"output": "x" * 1_000_000, "deep": deep, "many": [0] * 10_000, "odd": {1}})

    line = (tmp_path / "trace").read_text()
    event = json.loads(line)
    assert len(line) < 10_000
    assert event["output"].endswith("x[… 996,000 characters left out …]")
    assert (len(event["many"]), event["odd"]) == (200, "{1}")


def test_file_without_an_end_is_not_handed_in(tmp_path: Path) -> None:
    (tmp_path / SUBMITTED).write_text('{"meta": 1}')
    os.truncate(tmp_path / SUBMITTED, 15 * 2**40)

    assert read_submitted(str(tmp_path)) is None

    (tmp_path / SUBMITTED).unlink()
    os.mkfifo(tmp_path / SUBMITTED)

    assert read_submitted(str(tmp_path)) is None


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("precious")
    for name in (PROMPT, "trace.jsonl"):
        (tmp_path / name).symlink_to(mine)

    with pytest.raises(OSError, match="symbolic links"):
        write_prompt(str(tmp_path), "x")
    with pytest.raises(OSError, match="symbolic links"), open_trace(str(tmp_path / "trace.jsonl")):
        pass

    assert mine.read_text() == "precious"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_full_disk_costs_the_trace_and_not_the_answer(tmp_path: Path) -> None:
    (tmp_path / FAILURE).symlink_to("/dev/full")

    with open_trace("/dev/full") as note:
        note({"type": "turn"})
    write_failure(str(tmp_path), {"kind": "auth"})


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the environment of an agent in a step."""
    own = {"UWF_STEP_DIR": str(tmp_path), "UWF_TRACE": str(tmp_path / "trace.jsonl")}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    return {**os.environ, **own, "MY_KEY": "k"}


def left(environ: dict[str, str], name: str) -> str:
    return Path(environ["UWF_STEP_DIR"], name).read_text()


def test_fields_that_do_not_fit_are_refused_with_what_is_wrong(
    context: MakeContext, environ: dict[str, str]
) -> None:
    with pytest.raises(NoMeta, match="approved: 'maybe' is not of type 'boolean'"):
        complete(lambda _: "---\napproved: maybe\n---\nFine.", context(), environ)

    assert json.loads(left(environ, "failure.json"))["kind"] == "no-meta"


def test_kind_of_a_failure_of_the_function_is_kept(
    context: MakeContext, environ: dict[str, str]
) -> None:
    with pytest.raises(AskFailed):
        complete(raising(AskFailed("rate-limit", "no more today")), context(), environ)

    assert json.loads(left(environ, "failure.json"))["kind"] == "rate-limit"


def test_step_of_an_agent_has_its_prompt_and_trace(turn: Turn) -> None:
    (turn.place / "agent.py").write_text(
        "import sys\nfrom uwf_git.agentkit import create_agent, spawn_cli\n"
        "main = create_agent(lambda _: spawn_cli(['cat'], '---\\nwords: 3\\n---\\nThree.'))\n"
        "sys.exit(main())\n"
    )

    turn.uwf("thread", "step", turn.thread, "--agent", f"{sys.executable} {turn.place}/agent.py")

    step = turn.uwf("thread", "show", turn.thread)["step"]
    assert (step["meta"], step["rung"]) == ({"words": 3}, "front-matter")
    texts = {
        name: turn.installed("json-cas", "get", step[name]).out for name in ("prompt", "trace")
    }
    assert "words: 3" in texts["prompt"]
    assert '"cat"' in texts["trace"]


def test_context_is_read_from_the_store(turn: Turn) -> None:
    environ = {"UWF_REPO": f"{turn.place}/store.git"}

    context = load_context(environ, [turn.thread])

    assert context.thread_id == turn.thread
    assert context.start.prompt == "one two three"
    assert context.current_role.name == "counter"
    # Where this process stands, not where the thread was started.
    assert context.workdir == os.getcwd() != str(turn.place)
    assert load_context(environ, ["-t", turn.thread, "-r", "counter"]) == context
    assert load_context(environ | {"UWF_HEAD": context.head}, ["x", turn.thread]) == context


def test_thread_that_has_moved_on_is_refused(turn: Turn) -> None:
    environ = {"UWF_REPO": f"{turn.place}/store.git", "UWF_HEAD": "2MXBG6PN4A8JR"}

    with refuses("thread-moved", match=r"not 2MXBG6PN4A8JR"):
        load_context(environ, [turn.thread])


def test_missing_thread_is_refused(turn: Turn) -> None:
    with pytest.raises(UwfError, match="01J00000000000000000000009"):
        load_context({"UWF_REPO": f"{turn.place}/store.git"}, ["01J00000000000000000000009"])


@pytest.mark.parametrize("environ", [{}, {"UWF_REPO": ""}])
def test_without_a_store_nothing_can_be_read(environ: dict[str, str]) -> None:
    with pytest.raises(BadUsage, match="UWF_REPO is not set"):
        load_context(environ, ["01J7K9M2XNPQR5VWBCDF8G3H4T"])


def test_kit_opens_no_store_before_it_has_to() -> None:
    heavy = {"dulwich", "jsonata", "jsonschema", "yaml", "click", "subprocess"}
    script = f"import sys, uwf_git.agentkit; print(sorted({heavy} & set(sys.modules)))"

    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ran.stdout == "[]\n"


CONFIG = """\
[uwf "claude"]
    model = sonnet
    timeout = 9
[uwf "claude.reviewer"]
    model = opus
[uwf "claude.qa.v2"]
    model = haiku
[uwf "codex"]
    model = gpt
[uwf]
    agent = uwf-claude
"""


@pytest.fixture
def repo(tmp_path: Path) -> str:
    """Return a store whose config sets what any store may set."""
    (tmp_path / "config").write_text(CONFIG)
    return str(tmp_path)


def load(repo: str = "", role: str = "developer", **environ: str) -> dict[str, str]:
    words = {"model": environ.pop("word")} if "word" in environ else {}
    sealed = {"GIT_CONFIG_NOSYSTEM": "1", "UWF_REPO": repo}
    return load_settings("claude", role, environ=sealed | environ, words=words)


@pytest.mark.parametrize(("role", "model"), [("reviewer", "opus"), ("qa.v2", "haiku")])
def test_role_may_have_its_own(repo: str, role: str, model: str) -> None:
    assert load(repo, role) == {"model": model, "timeout": "9"}


def test_more_specific_one_wins(repo: str) -> None:
    assert load("", UWF_MODEL="all")["model"] == "all"
    assert load(repo, "reviewer", UWF_MODEL="all")["model"] == "opus"
    assert load(repo, "reviewer", UWF_CLAUDE_MODEL="mine")["model"] == "mine"
    assert load(repo, "reviewer", UWF_CLAUDE_MODEL="mine", word="word")["model"] == "word"


def test_environment_has_every_setting(repo: str) -> None:
    found = load(repo, UWF_CLAUDE_MAX_TURNS="3", UWF_CLAUDE_PERMISSION="", UWF_CODEX_ARGS="-x")

    assert found == {"model": "sonnet", "timeout": "9", "maxturns": "3"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store of a user with a home."""
    environ = {"GIT_CONFIG_NOSYSTEM": "1", "HOME": str(tmp_path)}
    return create_store(str(tmp_path / "store.git"), environ=environ)


def load_of(store: Store, name: str, value: str, **environ: str) -> dict[str, str]:
    """Load the settings when the store's own config sets one."""
    set_config(f"{store.path}/config", name, value)
    adapter = name.split(".")[1]
    sealed = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "UWF_REPO": store.path,
        "HOME": os.path.dirname(store.path),
    }
    return load_settings(adapter, "reviewer", environ=sealed | environ, words={})


@pytest.mark.parametrize(
    "name",
    [
        "uwf.claude.program",
        "uwf.claude.args",
        "uwf.claude.permission",
        "uwf.claude.env",
        "uwf.claude.reviewer.args",
        "uwf.react.shell",
        "uwf.cli.command",
        "uwf.llm.url",
        "uwf.llm.keyEnv",
        "uwf.extractor.key-env",
    ],
)
def test_store_alone_does_not_say_what_runs_or_where_a_key_goes(store: Store, name: str) -> None:
    with refuses("setting-not-trusted", status=1) as caught:
        load_of(store, name, "evil --all")

    assert "evil --all" in caught.value.message
    assert f"uwf agent trust --setting {normal_name(name)}" in str(caught.value.hint)
    trust_agents(store, [describe_command(name, "evil --all")], os.getcwd())
    assert "evil --all" in load_of(store, name, "evil --all").values()
    with refuses("setting-not-trusted"):
        load_of(store, name, "evil --other")


def test_users_own_value_needs_no_trust(store: Store, tmp_path: Path) -> None:
    user = tmp_path / "user"
    user.write_text('[uwf "claude"]\n\targs = --fast\n')
    mine = {"GIT_CONFIG_GLOBAL": str(user)}

    assert load_of(store, "uwf.claude.model", "opus", **mine) == {"model": "opus", "args": "--fast"}
    assert load_of(store, "uwf.claude.args", "--fast", **mine)["args"] == "--fast"
    assert load_of(store, "uwf.claude.args", "--bad", UWF_CLAUDE_ARGS="--mine")["args"] == "--mine"


def test_program_is_trusted_for_the_file_that_it_means(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "claude").write_text("#!/bin/sh\n")
    listed = describe_command("uwf.claude.program", "./claude")
    trust_agents(store, [listed], str(tmp_path / "here"))

    monkeypatch.chdir(tmp_path / "here")
    assert load_of(store, "uwf.claude.program", "./claude") == {"program": "./claude"}
    monkeypatch.chdir(tmp_path / "there")
    with refuses("setting-not-trusted"):
        load_of(store, "uwf.claude.program", "./claude")


def test_words_of_a_command_line(golden: Callable[[str, str], None]) -> None:
    def tell_words(words: list[str], word: str | None) -> object:
        return parse_words(words, keys=tuple(KEYS), word=word)

    answers = {
        "parse_arguments": parse_arguments,
        "parse_words": tell_words,
        "parse_seconds": lambda settings: parse_seconds(settings, "timeout"),
    }
    golden("words.txt", tell_cases(WORDS, answers))
