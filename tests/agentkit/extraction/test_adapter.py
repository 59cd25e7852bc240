import pytest

from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AskFailed, classify_status


def test_failure_tells_its_kind_and_what_had_been_said() -> None:
    failure = AskFailed(
        "auth", "log in first", hint="claude login", partial=AdapterAnswer(text="so far")
    )

    assert (failure.kind, failure.facts, failure.hint) == ("auth", {"kind": "auth"}, "claude login")
    assert failure.partial == AdapterAnswer(text="so far")


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "auth"), (403, "auth"), (413, "too-long"), (429, "rate-limit"), (500, "model-error")],
)
def test_status_of_an_endpoint_has_a_kind(status: int, kind: str) -> None:
    assert classify_status(status) == kind


def test_code_of_a_failure_is_not_that_of_an_unanswered_question() -> None:
    assert AskFailed("crashed", "gone").code == "ask-failed"
