from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.thread import FORMAT, TransitionRecord


def test_the_format_is_the_second() -> None:
    """FORMAT.md has the history; once it is released, a new number comes with a way to read it."""
    assert FORMAT == 2


def test_record_has_no_agent_by_default() -> None:
    record = TransitionRecord(
        thread=ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T"),
        event="start",
        status="ready",
        node=NodeHash("8FWKR3TN5V1QA"),
        depth=0,
        workflow=NodeHash("4KNM2PXR3B1QW"),
        workflow_name="solve-issue",
    )
    assert (record.role, record.agent, record.attempt) == (None, None, None)
