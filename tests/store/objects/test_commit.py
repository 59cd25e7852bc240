"""JSON files: the written form, and refused values."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dulwich.objects import Blob, Commit, ObjectID, Tree
from fresh_store import fresh_store
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases
from refusing import refuses
from store.story import Story, put_raw, signed

from uwf_git.model.event_folds import printable
from uwf_git.model.names import Oid
from uwf_git.store.objects.commit import (
    BadMessage,
    CommitDraft,
    CommitView,
    body_of,
    build_message,
    decode_json,
    descends,
    encode_json,
    parse_trailers,
    read_commit,
    subject_of,
    write_commit,
)
from uwf_git.store.store import Store

COMMITS = Path(__file__).parent / "made_up" / "commits.json"


def draft(store: Store, *parents: Oid, **files: bytes) -> CommitDraft:
    tree = Tree()
    blobs = {name: Blob.from_string(content) for name, content in files.items()}
    for name, blob in blobs.items():
        tree[name.replace("_", ".").encode()] = (0o100644, blob.id)
    views = tuple(read_commit(store.objects, parent) for parent in parents)
    return CommitDraft(tree, views, b"subject\n", list(blobs.values()))


def written(store: Store, *parents: Oid, now_ms: int = 0, **files: bytes) -> CommitView:
    oid = write_commit(store.objects, draft(store, *parents, **files), signed(now_ms))
    return read_commit(store.objects, oid)


OIDS = st.binary(min_size=20, max_size=20).map(lambda raw: ObjectID(raw.hex().encode()))
WORDS = st.text(
    st.characters(exclude_characters="<>\n\0", exclude_categories=["Cs"]), max_size=20
).map(str.encode)
PERSONS = st.builds(lambda name, email: b"%s <%s>" % (name, email), WORDS, WORDS)
BODIES = st.binary(max_size=60) | st.sampled_from([b"parent x\n\ntree y\n", b"\n\ngpgsig a\n b\n"])


@st.composite
def commits(draw: st.DrawFn) -> Commit:
    commit = Commit()
    commit.tree = draw(OIDS)
    commit.parents = draw(st.lists(OIDS, max_size=3))
    commit.author, commit.committer = draw(PERSONS), draw(PERSONS)
    commit.author_time = draw(st.integers(0, 2**40))
    commit.commit_time = draw(st.integers(0, 2**40))
    commit.author_timezone = draw(st.integers(-99, 99)) * 900
    commit.commit_timezone = 0
    commit.encoding = draw(st.none() | st.just(b"latin-1"))
    commit.gpgsig = draw(st.none() | st.just(b"-----BEGIN\n\nparent 1\n author 2\n-----END"))
    commit.message = draw(BODIES)
    return commit


@given(commits())
def test_a_commit_is_read_as_dulwich_reads_it(commit: Commit) -> None:
    store = fresh_store()
    store.objects.add_objects([(commit, None)])
    oid = Oid(commit.id.decode())
    assert read_commit(store.objects, oid) == CommitView(
        oid=oid,
        parents=tuple(Oid(parent.decode()) for parent in commit.parents),
        tree=commit.tree,
        message=commit.message,
        author=commit.author,
        time_s=commit.commit_time,
    )


def test_a_clock_that_git_cannot_hold_commits_nothing(store: Store) -> None:
    last_ms = (1 << 34) * 1000 - 1
    before = written(store, now_ms=last_ms)
    assert before.time_s == (1 << 34) - 1
    with refuses("clock-too-late", match="after the year 2514") as caught:
        written(store, before.oid, now_ms=last_ms + 1, new=b"content")
    assert Blob.from_string(b"content").id not in store.objects
    assert "date" in (caught.value.hint or "")


@pytest.fixture
def story(clock: Callable[[], int]) -> Story:
    return Story(fresh_store(), clock)


def test_commit_descends_from_itself_and_all_before_it(story: Story) -> None:
    tips = [story.head.commit, story.step().commit, story.step().commit]

    assert all(descends(story.store.objects, tips[-1], each) for each in tips)
    assert not descends(story.store.objects, tips[0], tips[1])


def test_blanks_alone_make_no_blob_too_large_to_be_shared() -> None:
    deep: Any = [0] * 40_000
    for _ in range(480):
        deep = [deep]

    written = encode_json(deep)
    assert len(written) < 100_000
    assert decode_json(written) == deep


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"])
def test_what_could_not_be_read_back_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the words are Python's
        encode_json({"a": value})


# Messages; that git reads them as we do is judged by git in interop/test_git_reads_us.py.


FORMAT_2 = {"Uwf-Format": "2"}

names = st.from_regex(r"Uwf-[A-Z][A-Za-z-]{0,20}", fullmatch=True)
words = st.text(st.characters(exclude_categories=["Cs"]))
trailers = st.dictionaries(names, words.filter(bool), min_size=1, max_size=5)


@given(who=st.text(), said=st.text(), body=st.text(), pairs=trailers)
def test_the_trailers_read_back_whatever_the_words(
    who: str, said: str, body: str, pairs: dict[str, str]
) -> None:
    pairs = {**pairs, **FORMAT_2}
    message = build_message(who, said, body=body, trailers=list(pairs.items()))
    assert parse_trailers(message) == pairs


@given(who=st.text(), said=st.text(), body=st.text())
def test_only_the_subject_and_the_trailers_stand_at_column_0(
    who: str, said: str, body: str
) -> None:
    text = build_message(who, said, body=body, trailers=[("Uwf-Event", "step")]).decode()
    first, *lines, event, last = text.split("\n")
    assert (event, last) == ("Uwf-Event: step", "")
    assert first
    assert len(first) <= 200
    assert printable(first) == first
    assert all(line == "" or line.startswith("    ") for line in lines)
    assert all(printable(line) == line for line in lines)
    assert subject_of(text.encode()) == first


@given(body=st.text())
def test_the_body_reads_back_but_for_what_cannot_be_printed(body: str) -> None:
    message = build_message("a", "b", body=body, trailers=[("Uwf-Event", "step")])
    again = build_message("a", "b", body=body_of(message), trailers=[("Uwf-Event", "step")])
    assert again == message


def test_what_uwf_would_not_write_is_refused(
    store: Store, golden: Callable[[str, str], None]
) -> None:
    def tell_commit(content: str) -> object:
        oid = Oid(put_raw(store, "commit", content.encode("latin-1")).decode())
        return read_commit(store.objects, oid)

    answers = {
        "read_commit": tell_commit,
        "parse_trailers": lambda message: parse_trailers(message.encode("latin-1")),
        "decode_json": lambda content: decode_json(content.encode("latin-1")),
    }
    golden("store/commits.txt", tell_cases(COMMITS, answers))
    with pytest.raises(ValueError, match="deeply"):
        decode_json(b"[" * 100_000)


@given(message=st.binary())
def test_whatever_a_message_is_it_has_trailers_or_is_refused(message: bytes) -> None:
    try:
        found = parse_trailers(message)
    except BadMessage:
        return
    assert found
