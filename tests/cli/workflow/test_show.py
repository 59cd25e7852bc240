"""WORKFLOW on a command line: a name, a hash or a file."""

from cli.program import Uwf
from commands.world import DEMO


def test_agent_beside_the_workflows_is_found_from_every_folder(uwf: Uwf) -> None:
    for folder in (".git", "agents", "deep"):
        (uwf.place / folder).mkdir()
    uwf.agent(name="agents/all")
    uwf.file(DEMO + "defaultAgent: agents/all\n", name=".workflows/demo.yaml")

    ran = uwf.json("run", "demo", "-p", "x", "--trust", cwd=str(uwf.place / "deep"))

    assert (ran["status"], ran["steps"]) == ("completed", 2)
