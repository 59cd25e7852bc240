"""WORKFLOW on a command line: a name, a hash or a file."""

from cli.program import Uwf

from uwf_git.cli.workflow.show import name_workflow


def test_file_is_registered_and_its_hash_is_meant(uwf: Uwf) -> None:
    file = uwf.file()

    named = name_workflow(uwf.session, file)

    assert uwf.json("workflow", "list")[0]["workflow"] == named
    assert name_workflow(uwf.session, file) == named


def test_name_and_hash_are_left_as_they_are(uwf: Uwf) -> None:
    assert name_workflow(uwf.session, "demo") == "demo"
    # Only an existing file counts as one: the name of a workflow may have that suffix.
    assert name_workflow(uwf.session, "nothing.yaml") == "nothing.yaml"
    assert uwf.json("workflow", "list") == []
