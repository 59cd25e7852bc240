import io
import json
import re
import shlex
import subprocess
import sys

import pytest
from cli.program import Ran, Uwf
from commands.draft.test_judge import GOOD, drafted, spoiled

BAD = spoiled("agentId: writer", "agentId: scribe")

# Writes the drafts 1, 2, … of the folder, the last one again and again, and plays all other roles.
SCRIPT = """\
case "$UWF_ROLE" in
drafter)
  number=$(($(cat count 2>/dev/null || echo 0) + 1)); echo $number > count
  test -e draft.$number && cp draft.$number newest
  printf -- '---\\nname: letter\\nwhy: as simple as can be\\nquestions: %s\\n---\\n' "$(cat asks)"
  cat newest ;;
scribe|writer) echo '{"meta": {}, "content": "Dear Ada"}' ;;
checker) echo '{"meta": {"polite": true}}' ;;
esac"""


def prepare(uwf: Uwf, *drafts: str, asks: str = "[]") -> str:
    """Write the drafts that the agent will hand over; return its command."""
    for number, text in enumerate(drafts, 1):
        uwf.file(text, name=f"draft.{number}")
    uwf.file(asks, name="asks")
    return uwf.agent(SCRIPT)


def draft(uwf: Uwf, *words: str, wish: str = "A letter to Ada") -> Ran:
    return uwf("workflow", "draft", wish, "--agent", str(uwf.place / "agent"), *words)


def test_draft_is_mended_once_shown_and_put(uwf: Uwf) -> None:
    prepare(uwf, BAD, GOOD)

    ran = draft(uwf, "--yes")

    assert ran.status == 0, ran.err
    told = json.loads(ran.out)
    assert (told["name"], told["file"], told["problems"]) == ("letter", GOOD, [])
    assert told["roles"] == ["writer", "checker"] * 3
    assert GOOD in ran.err
    assert "step 2 validator: The draft has 1 problem:" in ran.err
    (show,) = re.findall(r"to edit it: `(git .*) > letter.yaml`", ran.err)
    assert subprocess.check_output(shlex.split(show), text=True) == GOOD
    shown = uwf.json("workflow", "show", "letter")
    assert shown["hash" if "hash" in shown else "workflow"] == told["workflow"]


@pytest.mark.parametrize(("typed", "names"), [("y\n", ["letter"]), ("\n", [])])
def test_person_at_a_terminal_is_asked(
    typed: str, names: list[str], uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(uwf, GOOD)
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    words = ["workflow", "draft", "A letter", "--agent", str(uwf.place / "agent")]

    ran = uwf(*words, stdin_is_tty=True, stderr_is_tty=True).says(0, "Put letter? [y/N] ")
    assert ("--yes` puts it" in ran.err) == (not names)
    assert [row["name"] for row in uwf.json("workflow", "list")] == names


def test_draft_is_run_with_the_wish_and_a_person_keeps_the_own_role(uwf: Uwf) -> None:
    prepare(uwf, f"{GOOD}agentOverrides: {{checker: human}}\n")

    ran = draft(uwf, "--yes", "--run", wish="给艾达写信")

    assert ran.status == 0, ran.err
    told = json.loads(ran.out)
    assert (told["stopped"], told["waiting"]) == ("waiting", {"role": "checker"})
    assert f"thread {told['thread']}" in ran.err
    assert uwf.json("thread", "show", told["thread"])["prompt"] == "给艾达写信"


def test_nothing_that_a_hostile_draft_names_is_run(uwf: Uwf) -> None:
    own = uwf.agent("touch owned", name="scribe")
    hostile = drafted("an agent").replace("touch owned", own)
    roles = "roles: {scribe: {systemPrompt: Write., outputSchema: true}}"
    # The last one is valid: its agent has the name of a program on the PATH.
    on_path = (
        f"name: x\n{roles}\nroot: {{type: sequential, nodes: [{{type: agent, agentId: scribe}}]}}\n"
    )
    prepare(uwf, hostile, drafted("an agent of a role"), on_path)
    environ = {**uwf.session.environ, "PATH": f"{uwf.place}:{uwf.session.environ['PATH']}"}
    agent = str(uwf.place / "agent")

    ran = uwf("workflow", "draft", "x", "--yes", "--run", "--agent", agent, environ=environ)

    assert ran.status == 0, ran.err
    assert json.loads(ran.out)["status"] == "completed"
    assert (uwf.place / "count").read_text() == "3\n"
    assert not (uwf.place / "owned").exists()
    trusted = json.dumps(uwf.json("agent", "trusted"))
    assert agent in trusted
    assert own not in trusted
