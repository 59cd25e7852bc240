"""Steps and failed tries with trailers that contradict their nodes."""

from collections.abc import Callable

import pytest
from fresh_store import fresh_store
from store.story import AGENT, THREAD, WORKFLOW, Story, signed

from uwf_git.commands.verify.finding import Location
from uwf_git.commands.verify.tree import TreeChecks
from uwf_git.commands.verify.turn import check_attempt, check_signal, check_step
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.signal import Action, build_signal
from uwf_git.store.threads.heads import ACTIVE, advance_head
from uwf_git.store.threads.record import NewCommit, record_next

NOWHERE = NodeHash("8FWKR3TN5V1QA")


@pytest.fixture
def story(clock: Callable[[], int]) -> Story:
    """Return a thread of a step and a failed try."""
    story = Story(fresh_store(), clock)
    story.step()
    return story


def site_of(story: Story) -> Location:
    nodes = bytes.fromhex(story.snapshot.nodes.decode())
    return Location(ACTIVE + THREAD, story.head.commit, nodes)


def told_of_step(story: Story, head: NodeHash | None = None, **changes: object) -> list[str]:
    record = story.snapshot.record._replace(**changes)  # type: ignore[arg-type] # its fields
    nodes = TreeChecks(story.store).nodes
    found = list(check_step(nodes, site_of(story), record, head))
    return [each.message for each in [*found, *nodes.finish()]]


def told_of_attempt(story: Story, **changes: object) -> list[str]:
    snapshot = story.snapshot
    last = changes.pop("last_attempt", snapshot.get_present().last_attempt)
    present = snapshot.get_present()._replace(last_attempt=last)  # type: ignore[arg-type] # a name
    record = snapshot.record._replace(**changes)  # type: ignore[arg-type] # its fields
    found = check_attempt(TreeChecks(story.store).nodes, site_of(story), record, present)
    return [each.message for each in found]


def test_turns_as_they_are_written_are_right(story: Story) -> None:
    start = story.snapshot.get_start().hash

    assert told_of_step(story) == told_of_step(story, start) == []
    story.attempt()
    assert told_of_attempt(story) == []


def test_step_that_is_not_what_its_trailers_say_is_reported(story: Story) -> None:
    step = story.snapshot.record.node
    start = story.snapshot.get_start().hash

    assert told_of_step(story, NOWHERE) == [
        f"step {step} goes on from {start}, and the head before was {NOWHERE}"
    ]
    assert told_of_step(story, node=start) == [f"Uwf-Node is {start}, which is no StepNode"]
    assert told_of_step(story, role="x") == [f"Uwf-Role is 'x', and {step} was played by 'writer'"]
    assert told_of_step(story, agent="x") == [
        f"Uwf-Agent is 'x', and {step} was played by 'uwf-mock'"
    ]


def test_missing_node_is_reported_elsewhere(story: Story) -> None:
    assert told_of_step(story, node=NOWHERE) == []
    assert told_of_step(story, workflow=NOWHERE) == []
    assert told_of_step(story, workflow=AGENT.hash) == []


def test_role_and_meta_are_held_against_the_workflow(story: Story) -> None:
    story.step("checker", meta={"ok": "yes"})
    step = story.snapshot.record.node
    assert told_of_step(story) == [
        f"node {step} breaks its schema at meta.ok: 'yes' is not of type 'boolean'"
    ]

    story.step("stranger")
    step = story.snapshot.record.node
    assert told_of_step(story) == [
        f"step {step} was played by 'stranger', which is no role of the workflow"
    ]


def test_failed_try_that_is_not_what_its_trailers_say_is_reported(story: Story) -> None:
    story.attempt()
    name = story.snapshot.get_present().last_attempt

    assert told_of_attempt(story, attempt=7) == [f"Uwf-Attempt is 7, and {name} says 1"]
    assert told_of_attempt(story, role="x") == [
        f"Uwf-Role is 'x', and {name} was played by 'writer'"
    ]
    assert told_of_attempt(story, last_attempt=None) == ["now.json names no Attempt as lastAttempt"]
    assert told_of_attempt(story, last_attempt=NOWHERE) == [
        f"now.json names {NOWHERE} as lastAttempt, which is not in the commit"
    ]
    assert told_of_attempt(story, last_attempt=WORKFLOW.hash) == [
        f"now.json names {WORKFLOW.hash} as lastAttempt, which is no Attempt"
    ]


def signal(story: Story, action: Action) -> None:
    """Record a signal, as if it were a pause."""
    before = story.snapshot
    node = build_signal(action, timestamp=story.clock())
    record = before.record._replace(event="pause", role=None, agent=None, signal=node.hash)
    transition = NewCommit(record, "paused", before.get_present(), (node,))
    commit = record_next(story.store, before, transition, signed(story.clock()))
    story.head = advance_head(story.store, story.head, commit)


def told_of_signal(story: Story, **changes: object) -> list[str]:
    record = story.snapshot.record._replace(**changes)  # type: ignore[arg-type] # its fields
    found = check_signal(TreeChecks(story.store).nodes, site_of(story), record)
    return [each.message for each in found]


def test_signal_that_is_not_what_its_trailers_say_is_reported(story: Story) -> None:
    signal(story, "pause")
    name = story.snapshot.record.signal

    assert told_of_signal(story) == []
    assert told_of_signal(story, event="resume") == [
        f"Uwf-Event is resume, and {name} asks for pause"
    ]
    assert told_of_signal(story, signal=NOWHERE) == [
        f"Uwf-Signal is {NOWHERE}, which is not in the commit"
    ]
    assert told_of_signal(story, signal=WORKFLOW.hash) == [
        f"Uwf-Signal is {WORKFLOW.hash}, which is no Signal"
    ]
    # The check of the record reports its missing fields.
    assert told_of_signal(story, signal=None) == []


def test_appending_is_an_amendment(story: Story) -> None:
    signal(story, "append")

    assert told_of_signal(story, event="amend") == []
    assert "asks for append" in told_of_signal(story)[0]


def test_usage_that_would_lower_a_sum_is_reported(story: Story) -> None:
    story.step(usage={"costUsd": -5})

    assert any("costUsd is -5" in each for each in told_of_step(story))
