"""JSON files: the written form, and refused values."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from dulwich.object_store import MemoryObjectStore
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tree
from fresh_store import fresh_store
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses
from store.conftest import Git
from store.story import Story, put_raw, signed

from uwf_git.model.event_folds import printable
from uwf_git.store.objects.commit import (
    BadMessage,
    CommitDraft,
    CommitView,
    body_of,
    build_message,
    decode_json,
    descends,
    encode_json,
    find_entry,
    is_descendant,
    parse_trailers,
    read_commit,
    read_commit_file,
    subject_of,
    write_commit,
)
from uwf_git.store.objects.objects import DurableObjects, has_object
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
WHO = "A U Thor <a@example.com> 1700000000 +0000"


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


def test_a_commit_reads_back(store: Store, git: Git) -> None:
    first = written(store, now_ms=1_700_000_000_999)
    view = written(store, first.oid, now_ms=1_700_000_001_000, a_json=b"{}")
    assert view.parents == (first.oid,)
    assert view.message == b"subject\n"
    assert view.author == b"C O Mitter <committer@example.com>"
    assert (first.time_s, view.time_s) == (1_700_000_000, 1_700_000_001)
    told = git("cat-file", "-p", view.oid, cwd=Path(store.path))
    assert told == (
        f"tree {view.tree.decode()}\nparent {first.oid}\n"
        "author C O Mitter <committer@example.com> 1700000001 +0000\n"
        "committer C O Mitter <committer@example.com> 1700000001 +0000\n\nsubject\n"
    )


def test_a_commit_is_never_older_than_a_parent(store: Store) -> None:
    parents = [written(store, now_ms=now).oid for now in (5000, 9000, 7000)]
    assert written(store, *parents, now_ms=1000).time_s == 9


def test_no_ref_moves(store: Store) -> None:
    written(store)
    assert not list(Path(store.path, "refs").rglob("*/*"))


def test_a_file_is_read(store: Store) -> None:
    view = written(store, a_json='{"a": "é"}'.encode(), b_txt=b"\xff")
    assert read_commit_file(store.objects, view, "b.txt") == b"\xff"
    assert find_entry(store.objects, view, "c") is None


def test_a_missing_file_is_damage(store: Store) -> None:
    view = written(store)
    with refuses("damaged-commit", match=rf"{view.oid} has no now\.json"):
        read_commit_file(store.objects, view, "now.json")


def test_a_missing_commit_is_damage(store: Store) -> None:
    with refuses("damaged-commit", match=f"{'1' * 40} is missing"):
        read_commit(store.objects, Oid("1" * 40))


def test_something_else_is_no_commit(store: Store) -> None:
    oid = put_raw(store, "blob", b"content").decode()
    with refuses("damaged-commit", match=f"{oid} is not a commit"):
        read_commit(store.objects, Oid(oid))


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [f"tree {EMPTY_TREE}"],
        [f"tree {EMPTY_TREE}", f"author {WHO}"],
        [f"tree {EMPTY_TREE}", f"author {WHO}", f"committer {WHO}"],
        ["tree x", f"author {WHO}", f"committer {WHO}", "", "subject"],
        [f"tree {EMPTY_TREE}", "parent ../..", f"author {WHO}", f"committer {WHO}", "", "subject"],
        [f"tree {EMPTY_TREE}", "author x", "committer x", "", "subject"],
        [f"tree {EMPTY_TREE}", f"author {WHO}", "committer A <a> x +0000", "", "subject"],
        [f"author {WHO}", f"committer {WHO}", "", "subject"],
        [f"tree {EMPTY_TREE}", f"committer {WHO}", f"author {WHO}", "", "subject"],
        [f"tree {EMPTY_TREE}", f"author {WHO}", f"parent {'1' * 40}", f"committer {WHO}", "", ""],
        [f"tree {EMPTY_TREE}", f"author {WHO}", f"committer {WHO}", "nonsense", "", "subject"],
        [f"tree {EMPTY_TREE}\r", f"author {WHO}", f"committer {WHO}", "", "subject"],
        ["nonsense"],
        ["nonsense", "", "subject"],
        ["\0"],
    ],
)
def test_a_commit_that_git_would_not_write_is_damage(store: Store, lines: list[str]) -> None:
    oid = Oid(put_raw(store, "commit", "\n".join(lines).encode()).decode())
    with refuses("damaged-commit", "damaged-object", match=oid):
        read_commit(store.objects, oid)


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


def test_a_missing_tree_is_reported_by_its_object_id(store: Store) -> None:
    lines = [f"tree {'1' * 40}", f"author {WHO}", f"committer {WHO}", "", "subject", ""]
    oid = Oid(put_raw(store, "commit", "\n".join(lines).encode()).decode())
    with refuses("damaged-object", match="1" * 40):
        find_entry(store.objects, read_commit(store.objects, oid), "now.json")


def test_every_object_is_written_once(store: Store, clock: Callable[[], int]) -> None:
    """Nodes in one folder share its trees."""
    given: list[ObjectID] = []

    class Noting(DurableObjects):
        def add_objects(self, objects: Iterable[tuple[ShaFile, str | None]], *_more: Any) -> None:
            noted = list(objects)
            given.extend(obj.id for obj, _path in noted)
            super().add_objects(noted)

    objects = Noting(f"{store.path}/objects")
    objects.durable = False
    Story(Store(store.path, objects, store.refs, store.config), clock)
    assert len(given) == len(set(given)) > 40


def test_a_clock_before_1970_is_1970(store: Store, git: Git) -> None:
    view = written(store, now_ms=-86_400_000)
    assert view.time_s == 0
    git("fsck", "--strict", view.oid, cwd=Path(store.path))


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


def test_a_commit_descends_from_its_ancestors_and_itself(story: Story) -> None:
    objects = story.store.objects
    start, end = story.head.commit, story.step().commit
    assert is_descendant(objects, end, start)
    assert is_descendant(objects, end, end)
    assert not is_descendant(objects, start, end)


def test_diverged_commits_do_not_descend_from_each_other(story: Story) -> None:
    objects = story.store.objects
    one, other = story.write_step("writer", "one"), story.write_step("writer", "other")
    assert not is_descendant(objects, one, other)
    assert not is_descendant(objects, other, one)


def test_unknown_commits_descend_from_nothing(story: Story) -> None:
    objects, unknown = story.store.objects, Oid("0" * 40)
    assert not is_descendant(objects, story.head.commit, unknown)
    assert not is_descendant(objects, unknown, story.head.commit)
    # Nothing needs to be read to see that a commit is itself.
    assert is_descendant(objects, unknown, unknown)


def test_commit_descends_from_itself_and_all_before_it(story: Story) -> None:
    tips = [story.head.commit, story.step().commit, story.step().commit]

    assert all(descends(story.store.objects, tips[-1], each) for each in tips)
    assert not descends(story.store.objects, tips[0], tips[1])


def test_missing_commit_on_the_way_is_an_error_for_descends() -> None:
    with refuses("damaged-commit", match="is missing"):
        descends(MemoryObjectStore(), Oid("2" * 40), Oid("1" * 40))


def test_object_is_here_or_not(story: Story) -> None:
    assert has_object(story.store.objects, story.head.commit)
    assert not has_object(story.store.objects, Oid("1" * 40))


def test_json_is_read_and_written_for_people() -> None:
    assert decode_json(b'{"a": [1, 2.5, null, true, "\\u00e9"]}') == {
        "a": [1, 2.5, None, True, "é"]
    }
    assert encode_json({"a": "é"}) == '{\n  "a": "é"\n}\n'.encode()


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


@pytest.mark.parametrize("content", [b"\xff", b"NaN", b"[Infinity]", b"{", b"[" * 100_000])
def test_what_is_no_json_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the words are Python's
        decode_json(content)


@pytest.mark.parametrize("content", [b'{"a": 1, "a": 1}', b'[{"b": {"a": 1, "c": 2, "a": 3}}]'])
def test_a_key_that_is_there_twice_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="the key 'a' is there twice"):
        decode_json(content)


# Messages; that git reads them as we do is judged by git in interop/test_trailers.py.


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


def test_a_message_reads_well() -> None:
    message = build_message(
        "developer",
        "fixed the\n redirect loop",
        body="\n\nBecause:\r\n\r\n  it looped\t\n\n",
        trailers=[("Uwf-Role", "développeur 1"), ("Uwf-Agent", "a b%c")],
    )
    assert message.decode() == (
        "developer: fixed the redirect loop\n\n"
        "    Because:\n\n      it looped\n\n"
        "Uwf-Role: d%C3%A9veloppeur%201\nUwf-Agent: a%20b%25c\n"
    )
    assert body_of(message) == "Because:\n\n  it looped"


def test_a_message_without_words_has_a_subject_and_no_body() -> None:
    message = build_message("", " \n", trailers=[("Uwf-Event", "step")])
    assert message == b"uwf:\n\nUwf-Event: step\n"
    assert body_of(message) == ""


def test_a_long_subject_is_cut() -> None:
    message = build_message("a" * 300, "b", trailers=[("Uwf-Event", "step")])
    assert subject_of(message) == "a" * 200


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (b"", "has no trailers"),
        (b"subject", "has no trailers"),
        (b"subject\n\nbody", "has no trailers"),
        (b"subject\n\nbody\n", "has a line among its trailers that is no trailer: 'body'"),
        (b"subject\n\nUwf-Event: step", "has no trailers"),
        (b"subject\n\nUwf-Event: step\n\n", "has no trailers"),
        (b"subject\n\n\nUwf-Event: step\n\nUwf-Event\n", "that is no trailer: 'Uwf-Event'"),
        (b"Uwf-Event: step\n", "has no trailers"),
        (b"subject\n\nUwf-Event: step\nUwf-Event: end\n", "says Uwf-Event twice"),
        (b"subject\n\nUwf-Event: step\n more\n", "that is no trailer: ' more'"),
        (b"subject\n\nUwf-Event:step\n", "that is no trailer"),
        (b"subject\n\nUwf-Event: \n", "that is no trailer"),
        (b"subject\n\nUwf-Event: a b\n", "that is no trailer"),
        (b"subject\n\nuwf-event: step\n", "that is no trailer"),
        (b"subject\n\nSigned-off-by: me\nUwf-Event: step\n", "that is no trailer"),
        (b"subject\r\n\r\nUwf-Event: step\r\n", "has no trailers"),
        (b"subject\n\nUwf-Event: st\xff\n", "that is no trailer"),
        (b"subject\n\nUwf-Event: step\n\0", "has no trailers"),
    ],
)
def test_what_uwf_would_not_write_is_refused(message: bytes, words: str) -> None:
    with pytest.raises(BadMessage) as caught:
        parse_trailers(message)
    assert words in caught.value.message
    assert caught.value.exit_status == 5


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("3", "has format 3, newer than"),
        ("1", "has format 1"),
        ("x", "has no number"),
        ("1" * 10, "has no number"),
    ],
)
def test_message_of_another_format_is_refused(version: str, words: str) -> None:
    message = build_message("a", "b", body="", trailers=[("Uwf-Format", version)])

    with pytest.raises(BadMessage, match=words):
        parse_trailers(message)


def test_a_refusal_names_the_commit_when_it_is_known() -> None:
    assert "the message of a commit has" in BadMessage("has no trailers").message
    named = BadMessage("has no trailers", hint="look").of_commit("123")
    assert named.message == "the message of commit 123 has no trailers"
    assert (named.hint, named.facts) == ("look", {"commit": "123"})


@given(message=st.binary())
def test_whatever_a_message_is_it_has_trailers_or_is_refused(message: bytes) -> None:
    try:
        found = parse_trailers(message)
    except BadMessage:
        return
    assert found
