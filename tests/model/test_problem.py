from uwf_git.model.problem import Problem


def test_problem_of_the_document_itself_says_nothing_of_a_file() -> None:
    assert Problem("a.b", "is wrong", 3).as_document() == {
        "path": "a.b",
        "message": "is wrong",
        "line": 3,
    }


def test_problem_of_another_file_names_it() -> None:
    assert Problem("", "is wrong", 3, "parts/a.yaml").as_document()["file"] == "parts/a.yaml"
