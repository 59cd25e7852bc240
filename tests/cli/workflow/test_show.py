import pytest
from cli.program import Uwf


def test_show_gives_the_workflow_as_one_document(uwf: Uwf) -> None:
    put = uwf.json("workflow", "put", uwf.file())

    shown = uwf.json("workflow", "show", "demo")

    assert shown["workflow"] == put["workflow"]
    assert list(shown["roles"]) == ["writer", "checker"]
    assert uwf.json("workflow", "show", put["workflow"][:10]) == shown


@pytest.mark.parametrize("form", ["yaml", "text"])
def test_people_get_it_as_they_like_it(form: str, uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file())

    ran = uwf("workflow", "show", "demo", "--format", form)

    assert (ran.status, ran.err) == (0, "")
    assert "Write until somebody is content." in ran.out
