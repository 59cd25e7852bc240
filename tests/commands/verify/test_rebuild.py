"""How a document differs from the one that was made again."""

from uwf_git.commands.verify.making import list_differences


def test_each_difference_is_told_by_its_path() -> None:
    right = {"depth": 0, "usage": {"n": 1}, "gone": 1}
    told = {"usage": {"n": True}, "depth": False, "more": None}

    assert list(list_differences("", told, right)) == [
        "now.json says depth false, and the history gives 0",
        "now.json says usage.n true, and the history gives 1",
        "now.json says gone nothing, and the history gives 1",
    ]


def test_order_is_no_difference() -> None:
    assert list(list_differences("", {"a": 1, "b": [2]}, {"b": [2], "a": 1})) == []
