import json

from cli.program import Uwf
from commands.draft.test_judge import GOOD, spoiled

from uwf_git.cli.workflow.put import judge_command


def drafted(uwf: Uwf, text: str) -> str:
    """Start a drafting thread, and let the drafter take its step; return its id."""
    uwf.file(text, name="newest")
    head = "---\\nname: x\\nwhy: so\\nquestions: []\\n---\\n"
    agent = uwf.agent(f"printf -- '{head}'; cat newest")
    words = ["run", "draft", "-p", "A letter", "--agent", f"drafter={agent}", "--max-steps", "1"]
    return str(uwf.json(*words)["thread"])


def test_draft_is_judged_in_the_form_of_an_agents_answer(uwf: Uwf) -> None:
    good = drafted(uwf, GOOD)
    bad = drafted(uwf, spoiled("agentId: writer", "agentId: scribe"))

    fit = json.loads(uwf("workflow", "judge", good, "--format", "text").out)
    unfit = json.loads(uwf("workflow", "judge", bad).out)

    assert fit["meta"] == {"valid": True, "problems": []}
    assert fit["content"].startswith("It ends: writer → checker")
    assert unfit["meta"]["valid"] is False
    assert unfit["meta"]["problems"][0].startswith("line 13, root.nodes[0].agentId: ")
    assert "> 13 | " in unfit["content"]


def test_thread_without_a_draft_is_refused(uwf: Uwf) -> None:
    ran = uwf("workflow", "judge", uwf.begun())

    assert ran.status == 1
    assert "runs demo, and drafts no workflow" in ran.err


def test_verb_is_for_agents_and_not_in_the_help(uwf: Uwf) -> None:
    assert judge_command.examples == ("uwf workflow judge 01J7K9M2XNPQR5VWBCDF8G3H4T",)
    assert "judge" not in uwf("workflow", "--help").out
