"""Real git reads what we wrote, keeps it, and carries it elsewhere whole."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest
from dulwich.objects import Tree
from fresh_store import fresh_store
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interop.commits import REF, chain_commits
from interop.conftest import ACTIVE, ENDED
from interop.hostile import FORGERIES, Words, forged, fuzzed
from store.small_packs import damage, loosen
from store.story import COMMITTER, THREAD, Story, signed

from uwf_git.commands.verify.verify import verify
from uwf_git.model.event_folds import Words as Subject
from uwf_git.model.names import NodeHash
from uwf_git.model.thread import TransitionRecord
from uwf_git.store.git.program import clean_identity
from uwf_git.store.objects.commit import (
    BadMessage,
    CommitDraft,
    Signing,
    build_message,
    parse_trailers,
    subject_of,
    write_commit,
)
from uwf_git.store.remotes.remotes import add_remote
from uwf_git.store.store import Store, create_store, open_store
from uwf_git.store.threads.heads import get_head, list_threads
from uwf_git.store.threads.history import build_thread_message, parse_thread_message

Git = Callable[..., str]

ENDED_REF, ACTIVE_REF = f"refs/archive/{ENDED}", f"refs/threads/{ACTIVE}"


def test_git_gives_back_the_source_byte_for_byte(store: Store, git: Git) -> None:
    for version, text in (("demo~", "name: demo\r\n"), ("demo", "name: demo # é")):
        assert git("show", f"refs/workflows/{version}:workflow.yaml", cwd=Path(store.path)) == text


def test_git_says_what_a_step_added(store: Store, git: Git) -> None:
    told = git("diff", "--name-status", f"{ACTIVE_REF}~", ACTIVE_REF, cwd=Path(store.path))
    changes = [line.split("\t") for line in told.splitlines()]
    assert {how for how, _path in changes} == {"A", "M"}
    assert sorted(path for how, path in changes if how == "M") == ["head.json", "now.json"]
    assert len([path for how, path in changes if how == "A"]) == 2


def test_a_plain_clone_brings_no_thread_but_a_refspec_does(
    store: Store, git: Git, tmp_path: Path
) -> None:
    git("clone", "--quiet", store.path, "plain", cwd=tmp_path)
    assert git("for-each-ref", cwd=tmp_path / "plain") == ""
    refspec = "remote.origin.fetch=+refs/threads/*:refs/threads/*"
    git("clone", "--quiet", "-c", refspec, store.path, "asked", cwd=tmp_path)
    assert list_threads(open_store(str(tmp_path / "asked")), archived=False) == [ACTIVE]


def test_a_bundle_carries_a_thread(store: Store, git: Git, tmp_path: Path) -> None:
    git("bundle", "create", "--quiet", tmp_path / "thread.bundle", ENDED_REF, cwd=Path(store.path))
    git("init", "--quiet", "--bare", "other.git", cwd=tmp_path)
    git("fetch", "--quiet", "../thread.bundle", "refs/*:refs/*", cwd=tmp_path / "other.git")
    assert get_head(open_store(str(tmp_path / "other.git")), ENDED) == get_head(store, ENDED)


def test_a_thread_that_git_moved_is_where_git_put_it(store: Store, git: Git) -> None:
    """Refs are git's files: `update-ref` and we write the same ones, under the same lock."""
    before = get_head(store, ACTIVE)
    older = git("rev-parse", f"{ACTIVE_REF}~", cwd=Path(store.path)).strip()
    git("update-ref", ACTIVE_REF, older, before.commit, cwd=Path(store.path))
    assert get_head(store, ACTIVE).commit == older
    git("update-ref", "-d", ACTIVE_REF, cwd=Path(store.path))
    assert list_threads(store, archived=False) == []


def test_git_moves_a_thread_from_where_we_put_it(
    store: Store, clock: Callable[[], int], git: Git
) -> None:
    seen = get_head(store, ACTIVE)
    assert store.refs.delete(ACTIVE_REF, seen=seen.commit)
    assert store.refs.create(ACTIVE_REF, seen.commit)
    git("update-ref", ACTIVE_REF, f"{ACTIVE_REF}~", seen.commit, cwd=Path(store.path))
    assert get_head(store, ACTIVE).commit != seen.commit


def test_hint_for_a_broken_file_gives_the_object_back(
    clock: Callable[[], int], git: Git, tmp_path: Path
) -> None:
    """git never overwrites an object's file: fetching again leaves the broken one."""
    store = fresh_store()
    Story(store, clock).step()
    hub = str(tmp_path / "hub.git")
    git("clone", "-q", "--mirror", "--no-hardlinks", store.path, hub, cwd=tmp_path)
    add_remote(store, "origin", hub, cwd=str(tmp_path))
    loosen(store)
    blob = git("rev-parse", f"refs/threads/{THREAD}:head.json", cwd=store.path).strip()
    name = f"objects/{blob[:2]}/{blob[2:]}"
    path = Path(store.path, name)
    damage(path, path.read_bytes()[:20])

    def hints() -> set[str]:
        return {each.hint for each in verify(open_store(store.path), []).troubles}

    (hint,) = hints()
    assert hint.startswith(f"if {name} is a file of the store, move it elsewhere")
    assert "`git fetch --refetch REMOTE`" in hint
    git("fetch", "-q", "--refetch", "origin", cwd=store.path)
    assert hints() == {hint}
    path.rename(tmp_path / "broken")
    git("fetch", "-q", "--refetch", "origin", cwd=store.path)
    assert hints() == set()


# Readers of messages other than `git log`'s trailers are not fooled either.


# The role is one that a workflow can have: `git interpret-trailers` stops at a line that begins
# with `---`, and finds nothing.
MESSAGES = [
    build_message(
        "developer",
        words.said,
        body=words.body,
        trailers=[
            ("Uwf-Status", "ready"),
            ("Uwf-Role", "developer"),
            ("Uwf-Agent", words.agent),
            ("Uwf-Format", "2"),
        ],
    )
    for words in forged()
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store whose every message tries to forge something."""
    commits = [(COMMITTER, message) for message in MESSAGES]
    return Path(chain_commits(tmp_path_factory.mktemp("forged"), commits).path)


def test_interpret_trailers_finds_what_we_find(git: Git, tmp_path: Path) -> None:
    for message in MESSAGES:
        parsed = git("interpret-trailers", "--parse", cwd=tmp_path, stdin=message)
        lines = [line.partition(": ") for line in parsed.splitlines()]
        found = [(name, unquote(value)) for name, _colon, value in lines]
        assert found == list(parse_trailers(message).items()), message


def test_grep_finds_no_line_that_an_agent_wrote(git: Git, path: Path) -> None:
    count = ("rev-list", "--count", REF)
    assert git(*count, "--grep=^Uwf-Status: completed", cwd=path) == "0\n"
    assert git(*count, "--grep=^Uwf-Status: ready$", cwd=path) == f"{len(MESSAGES)}\n"


def test_git_keeps_every_message_as_it_is(git: Git, path: Path) -> None:
    log = git("log", "-z", "--reverse", "--format=%B", REF, cwd=path)
    assert log.removesuffix("\0").split("\0") == [message.decode() for message in MESSAGES]


# Trailers: whatever agents and people say, git and we read the same ones, and only ours.


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
    assert told.split() == [ENDED, "completed", ACTIVE, "ready"]


# Identities: whatever roles and people are called, no server refuses the commit.


# What git refuses as it is; one such commit would make its thread unpushable for ever.
REFUSED = [b"dev> <x>", b"dev<x> <x>", b"dev<x>", b"dev\nuwf <x>", b"dev\0uwf <x>", b"dev <x<y>"]


def committed(store: Store, author: bytes) -> str:
    """Write a commit by that author, under a ref."""
    signing = Signing(author, signed(0).committer, 0)
    oid = write_commit(store.objects, CommitDraft(Tree(), (), b"subject\n", []), signing)
    store.refs.create(f"refs/threads/{oid}", oid)
    return oid


def hub_of(git: Git, store: Store) -> Path:
    hub = Path(store.path).with_name("hub.git")
    git("init", "--quiet", "--bare", hub, cwd=Path(store.path))
    git("config", "receive.fsckObjects", "true", cwd=hub)
    return hub


@pytest.mark.parametrize("raw", REFUSED, ids=repr)
def test_git_refuses_the_names_that_are_not_cleaned(empty: Store, git: Git, raw: bytes) -> None:
    """dulwich writes all of them without a word, so that nothing but cleaning stands in between."""
    hub = hub_of(git, empty)
    oid = committed(empty, raw)
    with pytest.raises(Exception, match="returned non-zero"):
        git("push", "--quiet", hub, f"refs/threads/{oid}", cwd=Path(empty.path))


# The git fixture keeps nothing between examples.
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(st.tuples(st.text(), st.text()), min_size=20, max_size=40))
def test_whatever_it_is_called_git_finds_nothing_wrong(
    tmp_path_factory: pytest.TempPathFactory, git: Git, names: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("store")
    create_store(str(path))
    git("config", "uwf.fsync", "false", cwd=path)
    store = open_store(str(path))
    made = [committed(store, clean_identity(name, email)) for name, email in names]
    assert git("fsck", "--strict", "--no-dangling", cwd=path) == ""
    told = git("log", "--no-walk=unsorted", "--format=%an <%ae>", *made, cwd=path)
    expected = [clean_identity(name, email).decode() for name, email in names]
    assert told.splitlines() == list(dict.fromkeys(expected))
