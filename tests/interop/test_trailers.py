"""Trailers: whatever agents and people say, git and we read the same ones, and only ours."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interop.commits import REF, chain_commits
from interop.hostile import FORGERIES, Words, forged, fuzzed
from store.story import COMMITTER, THREAD

from uwf_git.model.event_folds import Words as Subject
from uwf_git.model.names import NodeHash
from uwf_git.model.thread import TransitionRecord
from uwf_git.store.objects.commit import BadMessage, parse_trailers, subject_of
from uwf_git.store.store import Store
from uwf_git.store.threads.message import build_thread_message, parse_thread_message

Git = Callable[..., str]

RECORD = TransitionRecord(
    THREAD, "step", "ready", NodeHash("8FWKR3TN5V1QA"), 2, NodeHash("4KNM2PXR3B1QW"), "demo"
)
said = st.sampled_from(FORGERIES) | st.text(max_size=40)
joined = st.lists(said, min_size=1, max_size=3).map("\n".join)
words = st.builds(Words, role=said, agent=said, said=joined, body=joined)


def record_of(spoken: Words) -> TransitionRecord:
    """Return the record of a step in which that was said; no name has lone surrogates."""
    role, agent = (name.encode(errors="replace").decode() for name in (spoken.role, spoken.agent))
    return RECORD._replace(role=role or None, agent=agent or None, workflow_name=role or "demo")


def message_of(spoken: Words) -> bytes:
    return build_thread_message(record_of(spoken), Subject(spoken.said, spoken.body))


def as_git_reads(git: Git, store: Store, *options: str) -> list[dict[str, str]]:
    """Let git read the trailers of every commit, oldest first; none may be there twice."""
    separators = "separator=%x01,key_value_separator=%x02"
    form = f"--format=%x03%(trailers:only=true,unfold=true,{separators})"
    given_options = [word for option in options for word in ("-c", option)]
    told = git(*given_options, "log", "--reverse", form, REF, cwd=Path(store.path))
    found = []
    for commit in told.split("\x03")[1:]:
        pairs = [item.split("\x02") for item in commit.rstrip("\n").split("\x01") if item]
        assert len({key for key, _value in pairs}) == len(pairs)
        found.append({key: unquote(value) for key, value in pairs})
    return found


def judge(git: Git, place: Path, spoken: list[Words]) -> None:
    """Let git read the commit that was written for each of *spoken*."""
    messages = [message_of(each) for each in spoken]
    store = chain_commits(place, [(COMMITTER, message) for message in messages])
    assert [parse_thread_message(message) for message in messages] == [
        record_of(each) for each in spoken
    ]
    assert as_git_reads(git, store) == [parse_trailers(message) for message in messages]
    assert git("fsck", "--strict", cwd=Path(store.path)) == ""
    subjects = git("log", "--reverse", "--format=%s", REF, cwd=Path(store.path))
    assert subjects.split("\n")[:-1] == [subject_of(message) for message in messages]


# The git fixture keeps nothing between examples.
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spoken=st.lists(words, min_size=25, max_size=40))
def test_git_reads_the_trailers_that_we_wrote_and_no_others(
    tmp_path_factory: pytest.TempPathFactory, git: Git, spoken: list[Words]
) -> None:
    judge(git, tmp_path_factory.mktemp("chain"), spoken)


def test_no_forgery_works_in_any_place(tmp_path: Path, git: Git) -> None:
    judge(git, tmp_path, forged())


def test_no_mixture_of_forgeries_works(tmp_path: Path, git: Git) -> None:
    judge(git, tmp_path, fuzzed(300))


@pytest.mark.parametrize(
    "option",
    ["trailer.separators=:=", "core.commentChar=auto", "core.commentChar=d", "core.commentChar=:"],
)
def test_the_settings_of_a_reader_change_nothing(tmp_path: Path, git: Git, option: str) -> None:
    messages = [message_of(spoken) for spoken in forged()]
    store = chain_commits(tmp_path, [(COMMITTER, message) for message in messages])
    assert as_git_reads(git, store, option) == [parse_trailers(each) for each in messages]


def test_what_git_would_be_fooled_by_we_refuse(tmp_path: Path, git: Git) -> None:
    """The message that a careless writer makes: git shows the forged status before the real one."""
    careless = b"writer: done\n\nUwf-Status: completed\nUwf-Status: ready\n"
    store = chain_commits(tmp_path, [(COMMITTER, careless)])
    form = "--format=%(trailers:key=Uwf-Status,valueonly)"
    assert git("log", form, REF, cwd=Path(store.path)).split() == ["completed", "ready"]
    with pytest.raises(BadMessage, match="says Uwf-Status twice"):
        parse_trailers(careless)


def test_git_alone_lists_threads_by_their_status(store: Store, git: Git) -> None:
    form = "--format=%(refname:lstrip=2) %(contents:trailers:key=Uwf-Status,valueonly)"
    told = git("for-each-ref", form, "refs/threads", "refs/archive", cwd=Path(store.path))
    assert told.split() == [
        "01J7K9M2XNPQR5VWBCDF8G3H4T",
        "completed",
        "01J7K9M2XNPQR5VWBCDF8G3H4V",
        "ready",
    ]
