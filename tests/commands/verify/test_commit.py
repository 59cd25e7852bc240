"""False trailers and files of thread commits: each lie is reported with its commit."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from commands.forging import (
    add,
    also,
    commits_of,
    forge,
    holds,
    messages,
    put_raw_commit,
    says,
    tip_of,
    troubles,
)
from dulwich.objects import Commit, ObjectID
from store.story import THREAD, Story

from uwf_git.commands.verify.making import write_anew
from uwf_git.model.names import Oid
from uwf_git.store.objects.commit import encode_json
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.threads.history import read_snapshot

REF = ACTIVE + THREAD
OTHER = "01J7K9M2XNPQR5VWBCDF8G3H4V"


@pytest.fixture
def story(store: Store, clock: Callable[[], int]) -> Story:
    """Return a thread: a start, a step, a failed try, a step, a step."""
    story = Story(store, clock)
    story.step(usage={"tokens": 3}, state={"round": 1})
    story.attempt()
    story.step("checker")
    story.step(text="Another one")
    return story


LIES = [
    (1, f"Uwf-Thread: {THREAD}", f"Uwf-Thread: {OTHER}", f"Uwf-Thread is {OTHER}, and this is"),
    (1, "Uwf-Depth: 1", "Uwf-Depth: 5", "Uwf-Depth is 5, and must be 1"),
    (1, "Uwf-Status: ready", "Uwf-Status: paused", "Uwf-Status is paused, and must be ready"),
    (1, "Uwf-Event: step", "Uwf-Event: attempt", "which is no Attempt"),
    (1, "Uwf-Event: step", "Uwf-Event: start", "there can be no such start: a thread begins aft"),
    (0, "Uwf-Event: start", "Uwf-Event: split", "there can be no such split: it follows no commit"),
    (0, "Uwf-Event: start", "Uwf-Event: join", "there can be no such join: it follows no commit"),
    (0, "Uwf-Event: start", "Uwf-Event: step", "Uwf-Event is step, and a history begins with st"),
    (0, "Uwf-Event: start", "Uwf-Event: step", "step has 0 parents, and must have one"),
    (
        1,
        "Uwf-Role: writer\n",
        "Uwf-Role: writer\nUwf-Attempt: 1\n",
        "Uwf-Attempt is 1, and must be absent",
    ),
    (0, "Uwf-Format", f"Uwf-Parent-Thread: {OTHER}\nUwf-Format", "and start.json has depth 0"),
    (
        1,
        "Uwf-Format",
        f"Uwf-Parent-Thread: {OTHER}\nUwf-Format",
        f"Uwf-Parent-Thread is {OTHER}, and must be absent",
    ),
    (1, "Uwf-Format: 2", "Uwf-Format: 9", "has format 9, newer than"),
    (1, "Uwf-Depth: 1\n", "", "has no Uwf-Depth"),
    (1, "Uwf-Event: step", "Uwf-Event: stumble", "has an unknown event"),
    (1, "\n\nUwf-", "\n\nUwf-Status: completed\n\nUwf-", "git may read as something else"),
    (1, "\n\nUwf-", "\n\n    a\0\n\nUwf-", "git may read as something else"),
]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie[3])
def test_trailer_that_lies_is_reported_with_its_commit(
    lie: tuple[int, str, str, str], store: Store, story: Story
) -> None:
    number, old, new, told = lie
    oids = forge(store, REF, {number: says(old, new)})

    found = [each for each in troubles(store) if told in each.message]

    assert [(each.ref, each.commit) for each in found] == [(REF, oids[number])]
    assert all(each.hint for each in found)


def test_trailer_that_no_version_writes_is_reported(store: Store, story: Story) -> None:
    forge(store, REF, {1: says("Uwf-Format", "Uwf-Else: 1\nUwf-Format")})

    assert [each.rpartition(" ")[2] for each in messages(store)] == ["Uwf-Else"]


@pytest.mark.parametrize("times", [[10**17], [2**53 - 1] * 2])
def test_time_that_no_reader_takes_is_reported(
    times: list[int], store: Store, story: Story
) -> None:
    for duration_ms in times:
        story.step(durationMs=duration_ms)

    (told,) = messages(store)
    assert told.startswith("the commit has an invalid now.json: not a natural number: 1")


def test_attempt_that_counts_otherwise_is_reported(store: Store, story: Story) -> None:
    story.attempt()
    story.attempt(attempt=77)

    (told,) = messages(store)
    assert told.endswith(" is attempt 77, and must be 2")


@pytest.mark.parametrize("number", [-1, 2])
def test_head_that_is_another_node_is_reported(number: int, store: Store, story: Story) -> None:
    start = story.snapshot.get_start().hash
    message = commits_of(store, story.head.commit)[number].message.decode()
    old = message.partition("Uwf-Node: ")[2][:13]
    oids = forge(store, REF, {number: says(f"Uwf-Node: {old}", f"Uwf-Node: {start}")})

    told = [each.message for each in troubles(store) if each.commit == oids[number]]
    assert f"head.json is not the file of node {start}" in told
    assert f"Uwf-Node is {start}, and must be {old}" in told


def test_depth_is_compared_with_the_state_where_the_one_before_is_unknown(
    store: Store, story: Story
) -> None:
    unknown = holds(store, "now.json", None)
    oids = forge(store, REF, {1: unknown, 2: says("Uwf-Depth: 1", "Uwf-Depth: 5")})

    assert [each.message for each in troubles(store) if each.commit == oids[2]] == [
        "Uwf-Depth is 5, and now.json says 1"
    ]


NO_PRESENTS = [
    (b"{}", "KeyError: 'workflow'"),
    (b"", "Expecting value"),
    (b"[" * 100_000, "nested too deeply"),
    (b'{"a":' * 600 + b"1" + b"}" * 600, "nested"),
    (b'{"a": NaN}', "NaN is not JSON"),
    (b"\xff", "codec can't decode"),
]


@pytest.mark.parametrize(("content", "told"), NO_PRESENTS, ids=[told for _, told in NO_PRESENTS])
def test_invalid_present_is_reported(content: bytes, told: str, store: Store, story: Story) -> None:
    oids = forge(store, REF, {2: holds(store, "now.json", content)})

    (found,) = troubles(store)
    assert found.commit == oids[2]
    assert found.message.startswith("the commit has an invalid now.json: ")
    assert told in found.message


@pytest.mark.parametrize(
    ("lie", "told"),
    [
        ({"usage": {"tokens": 1}}, "usage.tokens 1, and the history gives 3"),
        ({"state": {"round": True}}, "state.round true, and the history gives 1"),
        ({"secret": 1}, "secret 1, and the history gives nothing"),
        ({"usage": {"tokens": "x" * 90}}, 'usage.tokens "' + "x" * 78 + "…, and"),
    ],
)
def test_present_that_lies_is_reported(
    lie: dict[str, object], told: str, store: Store, story: Story
) -> None:
    content = encode_json(story.snapshot.get_present().as_document() | lie)
    oids = forge(store, REF, {-1: holds(store, "now.json", content)})

    (found,) = troubles(store)
    assert found.commit == oids[-1]
    assert found.message.startswith(f"now.json says {told}")


WRITTEN = "now.json has what the history gives, and is not written as uwf writes it"


def test_whole_sums_as_older_versions_wrote_them_are_no_lie(store: Store, story: Story) -> None:
    content = encode_json(read_snapshot(store, tip_of(store, REF)).get_present().as_document())
    for sum_, told in (b'"tokens": 3', []), (b'"depth": 3', [WRITTEN]):
        assert content.count(sum_) == 1
        forge(store, REF, {-1: holds(store, "now.json", content.replace(sum_, sum_ + b".0"))})

        assert messages(store) == told


def test_reading_what_older_versions_wrote_costs_little_memory() -> None:
    now = encode_json({"usage": {str(number): 1 for number in range(10_000)}})
    tracemalloc.start()
    try:
        assert write_anew(now) == now
        assert tracemalloc.get_traced_memory()[1] < 6 * len(now)
    finally:
        tracemalloc.stop()


def test_present_that_lies_is_reported_once(store: Store, story: Story) -> None:
    """A commit that continues from the lie is no second lie."""
    oids = forge(store, REF, {})
    for number in (1, 2, 3, 4):
        present = read_snapshot(store, oids[number]).get_present()
        lie = encode_json(present._replace(usage={"tokens": 1}).as_document())
        oids = forge(store, REF, {number: holds(store, "now.json", lie)})

    assert [each.commit for each in troubles(store)] == [oids[1]]


def test_date_before_the_parents_is_reported(store: Store, story: Story) -> None:
    def earlier(commit: Commit) -> None:
        commit.commit_time = commit.author_time = 5

    oids = forge(store, REF, {2: earlier})

    (found,) = troubles(store)
    assert found.commit == oids[2]
    assert found.message.startswith("its date, 5, is before that of its parent, ")


@pytest.mark.parametrize("name", [b"dev> <a@b>", b"dev<x> <a@b>", b"dev<a@b>", b"<a@b>"])
def test_identity_that_git_refuses_is_reported(name: bytes, store: Store, story: Story) -> None:
    tip = tip_of(store, REF)
    before, _author, after = store.objects.get_raw(ObjectID(tip.encode()))[1].partition(b"author ")
    rest = after.partition(b"\n")[2]
    forged = put_raw_commit(store, before + b"author " + name + b" 1800000000 +0000\n" + rest)
    store.refs.advance(REF, seen=tip, to=forged)

    found, other = troubles(store)
    assert other.message.startswith("its author is ")
    assert found.message.startswith(f"commit {forged} has an identity that git refuses as author")


def test_deed_after_the_end_is_reported(store: Store, story: Story) -> None:
    story.end()
    tip = story.head.commit
    commit = commits_of(store, tip)[-1].copy()
    assert isinstance(commit, Commit)
    commit.parents = [ObjectID(tip.encode())]
    assert store.refs.advance(ARCHIVE + THREAD, seen=tip, to=Oid(add(store, commit).decode()))

    assert messages(store) == ["Uwf-Event is end, after the thread was completed"]


def test_step_that_goes_on_from_elsewhere_is_reported(store: Store, story: Story) -> None:
    """The last step's commit is put on the first one's: its `prev` is not the head there."""
    oids = forge(store, REF, {})
    second = read_snapshot(store, oids[1]).record.node

    def moved(commit: Commit) -> None:
        commit.parents = [ObjectID(oids[1].encode())]

    forge(store, REF, {-1: moved})

    assert any(
        each.startswith("step ") and each.endswith(f"and the head before was {second}")
        for each in messages(store)
    )


@pytest.mark.parametrize(
    ("event", "status", "told"),
    [
        (
            "split",
            "split",
            "there can be no such split: no Uwf-At is no role that a workflow plays",
        ),
        ("join", "ready", "there can be no such join: a join after a commit that has no branches"),
        ("patch", "split", "which is no Signal"),
        ("step", "split", "Uwf-Status is split, and must be ready"),
    ],
)
def test_branches_of_a_thread_that_has_none_are_refused(
    store: Store, story: Story, event: str, status: str, told: str
) -> None:
    """Nothing follows from such an event, so its now.json could say anything."""
    present = read_snapshot(store, tip_of(store, REF)).get_present()
    lie = present._replace(state={"approved": True}, limits={}, usage={})
    forged = also(
        says("Uwf-Event: step", f"Uwf-Event: {event}"),
        says("Uwf-Status: ready", f"Uwf-Status: {status}"),
        holds(store, "now.json", encode_json(lie.as_document())),
    )
    forge(store, REF, {-1: forged})

    assert any(told in each for each in messages(store))


@pytest.mark.parametrize(
    ("usage", "told"), [({"costUsd": -5}, "costUsd is -5"), ({"x": None}, "x is null")]
)
def test_usage_that_would_lower_a_sum_is_reported(
    store: Store, clock: Callable[[], int], usage: dict[str, Any], told: str
) -> None:
    Story(store, clock).step(usage=usage)

    assert any(told in each for each in messages(store))
