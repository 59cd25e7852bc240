import base64
import itertools
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from commands.forging import tip_of
from commands.inspect.test_context import Golden, as_json, branch_of
from commands.inspect.test_show import split_of
from commands.sharing import Sites
from commands.turns import begin_turn, count_reads, script
from commands.world import DEMO, Git, World
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusing import refuses
from store.small_packs import loose_file, loosen

from uwf_git.commands.agent_run.run_checks import Secrets
from uwf_git.commands.agent_run.runs import list_running, running_rows
from uwf_git.commands.inspect.list import ListRequest, list_thread_rows, resolve_asked
from uwf_git.commands.inspect.logs import (
    GrowingFile,
    LastLine,
    LogLines,
    LogPiece,
    LogRequest,
    follow_logs,
)
from uwf_git.commands.inspect.show import show_thread
from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store
from uwf_git.store.threads.heads import ACTIVE, get_head
from uwf_git.store.threads.local_files import lock_drive, lock_thread

Damage = Callable[[Path, str, Git], None]


def listed(world: World, **asked: Any) -> list[ThreadId]:
    return [row["thread"] for row in list_thread_rows(world.store, ListRequest(**asked))]


@pytest.fixture
def three(world: World) -> list[ThreadId]:
    """Start two threads of one workflow and one of another, which is killed; oldest first."""
    world.put()
    world.put(DEMO.replace("name: demo", "name: other"))
    threads = [world.start(), world.start(workflow="other"), world.start()]
    world.kill(threads[1])
    return threads


def test_row_reads_one_commit_and_takes_no_lock(
    world: World, three: list[ThreadId], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = count_reads(monkeypatch)

    assert len(listed(world, archived=True)) == 3
    assert len(counted.objects) == len(set(counted.objects)) == len(three)
    assert counted.locks == 0


def test_thread_whose_active_ref_a_crash_left_has_ended(
    world: World, three: list[ThreadId]
) -> None:
    for thread in three:
        world.store.refs.create(ACTIVE + thread, get_head(world.store, thread).commit)

    assert listed(world) == [three[2], three[0]]
    assert listed(world, archived=True) == three[::-1]


def test_workflow_that_is_nowhere_is_refused_with_the_nearest(
    world: World, three: list[ThreadId]
) -> None:
    with refuses("no-such-workflow", match="no workflow dmo") as caught:
        listed(world, workflow="dmo")
    assert "did you mean demo?" in str(caught.value.hint)
    assert listed(world, workflow="demo", statuses=frozenset({"waiting"})) == []


def test_workflow_is_named_as_elsewhere(world: World, three: list[ThreadId]) -> None:
    thread = world.start(workflow=world.put(DEMO.replace("name: demo", "name: é")).workflow)
    node = world.snapshot(thread).record.workflow

    for text in (node, node[:8], node.lower(), "é", "e\u0301"):
        assert listed(world, workflow=text) == [thread]
        assert resolve_asked(world.store, text, None) in {node, "é"}


def test_row_has_the_status_of_a_thread(world: World, golden: Golden) -> None:
    world.stepped()

    golden("commands/row.json", as_json(list_thread_rows(world.store, ListRequest())))


def write_ref(content: bytes) -> Damage:
    def damage(ref: Path, _oid: str, _git: Git) -> None:
        ref.write_bytes(content)

    return damage


def write_object(content: bytes) -> Damage:
    def damage(ref: Path, oid: str, _git: Git) -> None:
        loose(ref, oid).write_bytes(content)

    return damage


def loose(ref: Path, oid: str) -> Path:
    store = open_store(str(ref.parents[2]))
    loosen(store)
    path = loose_file(store, oid)
    path.chmod(0o644)
    return path


def replace_by_message(message: str) -> Damage:
    """Point the ref at a commit of the same tree with another message."""

    def damage(ref: Path, oid: str, git: Git) -> None:
        ref.write_text(git("commit-tree", f"{oid}^{{tree}}", cwd=ref.parents[2], stdin=message))

    return damage


def point_at(revision: str) -> Damage:
    def damage(ref: Path, oid: str, git: Git) -> None:
        ref.write_text(git("rev-parse", oid + revision, cwd=ref.parents[2]))

    return damage


DAMAGES: dict[str, Damage] = {
    "empty ref": write_ref(b""),
    "ref of garbage": write_ref(b"\xff\x00" * 40),
    "short ref": write_ref(b"abc\n"),
    "symbolic ref": write_ref(b"ref: refs/heads/main\n"),
    "ref to nothing": write_ref(b"0123456789" * 4 + b"\n"),
    "commit gone": lambda ref, oid, _git: loose(ref, oid).unlink(),
    "empty object": write_object(b""),
    "object of garbage": write_object(b"garbage"),
    "object cut short": write_object(zlib.compress(b"commit 400\0tree ")[:-3]),
    "object of another kind": write_object(zlib.compress(b"blob 1\0x")),
    "commit without lines": write_object(zlib.compress(b"commit 3\0x\ny")),
    "ref to a tree": point_at("^{tree}"),
    "ref to a blob": point_at(":now.json"),
    "no trailers": replace_by_message("hello\n"),
    "forged trailers": replace_by_message(
        "start: x\n\nUwf-Format: 2\nUwf-Thread: 01J00000000000000000000001\nUwf-Event: x\n"
    ),
}


FORMATS = {
    "older format": replace_by_message("start: x\n\nUwf-Format: 1\n"),
    "newer format": replace_by_message("start: x\n\nUwf-Format: 999\n"),
}


@pytest.mark.parametrize("name", [*DAMAGES, *FORMATS])
def test_damaged_or_unreadable_thread_is_one_row_that_says_so(
    name: str, world: World, git: Git
) -> None:
    world.put()
    before, spoiled, after = world.start(), world.start(), world.start()
    ref = Path(world.store.path, "refs", "threads", spoiled)
    {**DAMAGES, **FORMATS}[name](ref, ref.read_text().strip(), git)
    world.reopen()
    status = "unreadable" if name in FORMATS else "damaged"

    rows = list_thread_rows(world.store, ListRequest(archived=True))

    assert [row["thread"] for row in rows] == [after, spoiled, before]
    assert [row["status"] for row in rows] == ["ready", status, "ready"]
    assert rows[1]["error"]
    assert listed(world, statuses=frozenset({status})) == [spoiled]


def test_ref_that_is_no_thread_is_not_listed(world: World) -> None:
    thread = world.begun()
    folder = Path(world.store.path, "refs", "threads")
    content = (folder / thread).read_text()
    for name in ("notes", thread.lower(), f"{thread}.lock", f"{thread}x"):
        (folder / name).write_text(content)
    (folder / "01ARZ3NDEKTSV4RRFFQ69G5FAV").mkdir()

    assert listed(world, archived=True) == [thread]


def test_time_of_the_last_event_is_asked_for(world: World, three: list[ThreadId]) -> None:
    world.step(three[0])
    updated = {row["thread"]: row["lastUpdateTime"] for row in list_thread_rows(
        world.store, ListRequest(archived=True)
    )}  # fmt: skip
    oldest, between, newest = sorted(updated, key=lambda thread: updated[thread])

    def asked(**times: int) -> set[str]:
        return set(listed(world, archived=True, **times))

    assert newest == three[0]
    assert asked(after_ms=updated[newest] + 999) == {newest}
    assert asked(after_ms=updated[newest] + 1000) == set()
    assert asked(before_ms=updated[newest]) == {oldest, between}
    assert asked(after_ms=updated[between], before_ms=updated[newest]) == {between}


def test_damaged_thread_is_of_no_time(world: World) -> None:
    thread = world.begun()
    Path(world.store.path, "refs", "threads", thread).write_bytes(b"")

    assert listed(world) == [thread]
    assert listed(world, before_ms=10**15) == []


def test_thread_at_work_is_running_and_no_longer_ready(world: World) -> None:
    resting, driven, stepped, waiting = (world.begun() for _ in range(4))
    world.step(waiting, command="human")
    with (
        lock_drive(world.store, driven, since_ms=1),
        lock_thread(world.store, stepped, since_ms=1),
        lock_drive(world.store, waiting, since_ms=1),
    ):
        assert listed(world, statuses=frozenset({"running"})) == [stepped, driven]
        assert listed(world, statuses=frozenset({"ready"})) == [resting]
        rows = list_thread_rows(world.store, ListRequest())
    assert [row["status"] for row in rows] == ["waiting", "running", "running", "ready"]
    assert listed(world, statuses=frozenset({"running"})) == []


def test_diverged_thread_is_listed_and_shown_so(sites: Sites) -> None:
    site, other, thread = sites
    fresh = site.world.start()
    site.step(thread)
    other.step(thread, ok=True)
    other.push()
    assert site.fetch().failure() is not None
    store = open_store(str(site.path), environ=os.environ)
    there = tip_of(store, f"refs/uwf/remotes/origin/threads/{thread}")

    rows = {row["thread"]: row for row in list_thread_rows(store, ListRequest())}

    assert rows[thread]["diverged"] == [{"remote": "origin", "there": there}]
    assert "diverged" not in rows[fresh]
    assert show_thread(store, thread)["diverged"] == rows[thread]["diverged"]
    assert "diverged" not in show_thread(store, fresh)


# Who works on branches: `ps`, `wait` and `logs` of their parent.


@pytest.fixture
def thread(world: World) -> ThreadId:
    thread = split_of(world)
    world.step(thread, script())
    return thread


def test_ps_of_a_parent_has_its_branches(world: World, thread: ThreadId) -> None:
    branch, other = branch_of(world, thread, 0), world.begun()

    with lock_thread(world.store, branch, since_ms=0), lock_drive(world.store, other, since_ms=0):
        rows = {row["thread"]: row for row in running_rows(world.store, now_ms=1)}
        inside = [each.thread for each in list_running(world.store, thread)]

    assert set(rows) == {branch, other}
    assert rows[branch]["parentThread"] == thread
    assert "parentThread" not in rows[other]
    assert inside == [branch]


def test_logs_of_a_parent_are_followed_from_branch_to_branch(
    world: World, thread: ThreadId
) -> None:
    first, second = (branch_of(world, thread, number) for number in (0, 1))

    def log(branch: ThreadId, role: str, line: str) -> None:
        base = begin_turn(world, branch, role=role)
        with open(world.store.local_path("run", branch, base, "stderr"), "a") as file:
            file.write(f"{line}\n")

    with lock_thread(world.store, first, since_ms=0):
        log(first, "reviewer", "reviewing")
        pieces = (piece for piece in follow_logs(world.store, LogRequest(thread)) if piece.lines)
        told = [next(pieces)]
        log(second, "tester", "testing")
        told.append(next(pieces))

    assert [*told, *pieces] == [
        LogPiece("reviewer (nobody), branch 0 reviewer", ["reviewing"]),
        LogPiece("tester (nobody), branch 1 testing", ["testing"]),
    ]


# Files that another process writes: nothing is lost, read twice or waited for.


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def file(path: Path) -> Iterator[GrowingFile]:
    """Return a file that does not exist yet."""
    growing = GrowingFile(str(path))
    yield growing
    growing.close()


def new(file: GrowingFile) -> bytes:
    return b"".join(file.read_new())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=20)))
def test_all_that_is_added_is_given_once(tmp_path: Path, pieces: list[bytes]) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    file = GrowingFile(str(path))
    given = b""
    with path.open("ab", buffering=0) as log:
        for piece in pieces:
            log.write(piece)
            given += new(file)
    file.close()
    assert given == b"".join(pieces)


def test_file_that_was_truncated_is_read_from_its_beginning(path: Path, file: GrowingFile) -> None:
    path.write_bytes(b"a long line\n")
    assert new(file) == b"a long line\n"
    path.write_bytes(b"new\n")
    assert new(file) == b"new\n"


def test_file_that_was_replaced_is_read_to_its_end_first(path: Path, file: GrowingFile) -> None:
    path.write_bytes(b"one\n")
    assert new(file) == b"one\n"
    with path.open("ab") as old:
        old.write(b"two\n")
    path.unlink()
    path.write_bytes(b"three\n")
    assert new(file) == b"two\nthree\n"


def test_pipe_or_folder_does_not_block(path: Path) -> None:
    os.mkfifo(path)
    file = GrowingFile(str(path))
    assert new(file) == b""
    file.close()
    file.close()
    assert new(GrowingFile(str(path.parent / "none"))) == b""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.binary(max_size=5)), most=st.integers(0, 6), is_ended=st.booleans())
def test_last_lines_are_those_that_python_counts(
    tmp_path: Path, lines: list[bytes], most: int, *, is_ended: bool
) -> None:
    path = tmp_path / "log"
    content = b"\n".join(lines) + (b"\n" if is_ended and lines else b"")
    path.write_bytes(content)
    ended = content.split(b"\n")
    wanted = [*(line + b"\n" for line in ended[:-1]), *([ended[-1]] if ended[-1] else [])]
    file = GrowingFile(str(path))

    count = file.count_last_lines(most)
    before = file.read_before(10_000)
    last = new(file)
    file.close()

    assert last == b"".join(wanted[max(0, len(wanted) - most) :])
    assert count == min(most, len(wanted))
    assert before + last == content


def test_last_lines_of_a_large_file_are_found_across_pieces(path: Path) -> None:
    lines = [b"%d " % number + b"x" * 1000 + b"\n" for number in range(500)]
    path.write_bytes(b"".join(lines))
    file = GrowingFile(str(path))
    assert file.count_last_lines(130) == 130
    assert new(file) == b"".join(lines[-130:])
    file.close()


def test_last_lines_of_no_file_are_none(file: GrowingFile) -> None:
    assert file.count_last_lines(3) == 0
    assert file.read_before(3) == b""


def test_what_lies_behind_a_limit_is_not_read(path: Path) -> None:
    path.write_bytes(b"one\ntwo\nthree\n")
    os.truncate(path, 15 * 2**40)
    file = GrowingFile(str(path), most_bytes=12)

    assert new(file) == b"one\ntwo\nthre"
    assert new(file) == b""
    assert file.count_last_lines(2) == 2
    assert new(file) == b"two\nthre"
    file.close()


# Lines of logs: whole, and without keys wherever the pieces end.


SECRET = "correct-horse-battery-1"
SHAPED = "sk-0123456789abcdefABCDEF"
PEM = [
    "-----BEGIN RSA PRIVATE KEY-----",
    *(f"MIIEowIBAAKCAQEA{number:048}" for number in range(25)),
    "-----END RSA PRIVATE KEY-----",
]


def lines_of(*pieces: bytes, secrets: Sequence[str] = (SECRET,), before: bytes = b"") -> list[str]:
    lines = LogLines(Secrets(tuple(secrets)), before=before)
    return [line for piece in pieces for line in lines.add(piece)] + [*lines.end()]


def cut(content: bytes, places: list[int]) -> list[bytes]:
    """Cut *content* at *places*."""
    edges = [0, *sorted(place % (len(content) + 1) for place in places), len(content)]
    return [content[start:end] for start, end in itertools.pairwise(edges)]


def test_lines_end_as_systems_and_progress_bars_end_them() -> None:
    assert lines_of(b"one\ntwo\r\n10%\r20%\r\n\nlast") == ["one", "two", "10%", "20%", "", "last"]
    assert lines_of(b"") == []
    assert lines_of(b"x\r") == ["x"]


@given(st.lists(st.sampled_from(["a", "é", "\r", "\n", "\t", SECRET, SHAPED, "日"])), st.data())
def test_where_the_pieces_end_changes_nothing(parts: list[str], data: st.DataObject) -> None:
    content = " ".join(parts).encode()

    told = lines_of(*cut(content, data.draw(st.lists(st.integers(0, 500), max_size=6))))

    assert told == lines_of(content)
    assert not any(SECRET in line or SHAPED in line for line in told)


def test_secret_that_lines_cut_is_masked_where_they_arrive_together() -> None:
    secret = "correct-horse-battery-" * 4

    told = lines_of(b"key:\n" + base64.encodebytes(secret.encode()) + b"end\n", secrets=[secret])

    assert told[0] == "key:"
    assert "".join(told[1:]) == "[masked]end"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_private_key_is_masked_over_all_its_lines(end: str) -> None:
    content = end.join(["before", *PEM, "after"]).encode()
    for pieces in ([content], cut(content, [30, 60, 200, 900])):
        assert lines_of(*pieces) == ["before", "[masked]", "after"]


def test_key_without_an_end_does_not_swallow_the_rest_of_the_log() -> None:
    told = lines_of("\n".join([PEM[0], *["a line"] * 1000]).encode())

    assert told[0] == "[masked]"
    assert 700 < len(told) < 1000


def test_short_line_after_the_end_of_a_key_is_there() -> None:
    assert lines_of("\n".join([*PEM, "", "x"]).encode()) == ["[masked]", "", "x"]
    assert lines_of(f"{PEM[0]}\nabc\n{PEM[-1]} and more".encode()) == ["[masked]", " and more"]


def test_line_without_an_end_is_cut_between_words() -> None:
    lines = LogLines(Secrets((SECRET,)))

    told = list(lines.add(b"word " * 60_000 + SECRET[:7].encode()))
    told += [*lines.add(SECRET[7:].encode()), *lines.end()]

    assert len(told) == 2
    assert told[1] == "[masked]"


def last_of(*pieces: bytes, secrets: Sequence[str] = (SECRET,)) -> str:
    line = LastLine(Secrets(tuple(secrets)))
    for piece in pieces:
        line.add(piece)
    return line.find()


def test_last_line_is_the_last_that_says_anything() -> None:
    assert last_of() == ""
    assert last_of(b"one\n\x1b[31mt", b"wo\x1b[0m\r\n\r\n \x1b[0m\n") == "two"
    assert last_of(b"10%\r20%\r") == "20%"
    assert last_of("caf\u00e9".encode()[:-1], "\u00e9".encode()[1:]) == "caf\u00e9"
    assert last_of(b"it is \x1b[2J " + SHAPED.encode()) == "it is \x1b[2J [masked]"
    assert last_of(b"said " + SECRET.encode()) == "said [masked]"


@pytest.mark.parametrize("ends", [0, 5, len(PEM) - 1])
def test_last_line_is_none_of_a_private_key(ends: int) -> None:
    begun = "before\n" + "\n".join(PEM[: ends + 1])

    assert last_of(begun.encode()).removeprefix("before") in {"", "[masked]"}
    assert last_of(b"x" * 20_000 + b"\n" + begun.encode()) == "[masked]"


def test_last_line_of_a_flood_costs_little_and_shows_no_half_of_a_key() -> None:
    line = LastLine(Secrets((SECRET,)))
    for _count in range(1000):
        line.add(b"x" * 65_536)
    assert line.find() == ""
    line.add(b" and then")
    assert line.find() == "and then"
    line.add(b"\n" + SECRET.encode() + b" " + b"y" * 32_000 + b" " + SECRET.encode())
    assert line.find().endswith("[masked]")
    line.add(SECRET.encode() * 2000)
    assert SECRET[4:] not in line.find()
