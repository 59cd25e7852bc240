"""A remote that lies, disconnects or stays silent destroys nothing; the error is one line."""

import os
import socket
import struct
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from pathlib import Path

import pytest
from commands.sharing import Site, another, share
from commands.world import Git, World
from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.objects import Blob, Commit, ObjectID, Tree
from dulwich.pack import write_pack_objects
from interop.bombs import BLOB, Entry, delta_bomb, many_large, pack
from interop.liar import advertised, liar, line
from interop.servers import serving
from refusing import refuses

from uwf_git.commands.remote.fetch import fetch_remote
from uwf_git.model.names import Oid
from uwf_git.store.git.config import set_config
from uwf_git.store.objects.commit import list_new_objects
from uwf_git.store.remotes.incoming import FetchRequest, receive_objects
from uwf_git.store.remotes.remotes import RemoteUrl
from uwf_git.store.remotes.transport import SOCKETS, Access, RemoteFailed, fetch_pack
from uwf_git.store.store import open_store

OTHER = "01J7K9M2XNPQR5VWBCDF8G3H4T"
TIP = {f"refs/threads/{OTHER}": "1" * 40}


@pytest.fixture
def site(world: World, tmp_path: Path) -> Site:
    """Return a store with a thread that is not shared."""
    return share(world, str(tmp_path / "nowhere.git"))[0]


@pytest.fixture
def receiver(world: World, hub: Path) -> Site:
    """Return another store."""
    return another(world, str(hub))


def redirected(site: Site, url: str) -> Site:
    set_config(f"{site.path}/config", "remote.origin.url", url)
    site.world.reopen()
    return site


def thread_tip(site: Site) -> Oid:
    return next(oid for name, oid in site.refs("threads").items())


def pack_of(site: Site, *oids: str) -> bytes:
    objects = open_store(str(site.path)).objects
    file = BytesIO()
    found = [(objects[ObjectID(oid.encode())], None) for oid in oids]
    write_pack_objects(file, found, object_format=DEFAULT_OBJECT_FORMAT)
    return file.getvalue()


LINES = {
    "garbage for refs": b"what do you want?",
    "a line with no end": b"0fff half a line",
    "a length that is none": b"zzzz",
    "an error of the server": line(b"ERR no such repository\n"),
    "nothing": b"",
    "refs without ids": line(b"refs/threads/x\n") + b"0000",
}


@pytest.mark.parametrize("greeting", LINES.values(), ids=LINES.keys())
def test_a_server_that_makes_no_sense_is_reported(greeting: bytes, site: Site) -> None:
    before = site.refs()
    with liar(greeting) as url, pytest.raises(RemoteFailed) as failed:
        redirected(site, url).fetch()
    assert "127.0.0.1" in failed.value.message
    assert "\n" not in failed.value.message
    assert failed.value.hint
    assert site.refs() == before
    assert list((site.path / "uwf" / "incoming").iterdir()) == []


PACKS = {
    "garbage": b"PACK what?",
    "a pack of another version": b"PACK" + struct.pack(">II", 77, 1) + b"x" * 40,
    "a pack that is cut short": b"PACK" + struct.pack(">II", 2, 3) + b"\x95\x0ax\x9c",
    "nothing at all": b"",
}


def packs_of(site: Site) -> list[str]:
    """List the files of packs: each step has written one."""
    return sorted(os.listdir(site.path / "objects" / "pack"))


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS.keys())
def test_an_invalid_pack_leaves_nothing_behind(pack: bytes, site: Site, git: Git) -> None:
    before, packs = site.refs(), packs_of(site)
    with liar(advertised(TIP), line(b"NAK\n") + pack) as url:
        if pack:
            with pytest.raises(RemoteFailed):
                redirected(site, url).fetch()
        else:
            assert [each.event for each in redirected(site, url).fetch().reconciled] == ["refused"]
    assert site.refs() == before
    assert site.refs("uwf/remotes/origin/threads") == {}
    assert packs_of(site) == packs
    assert git("fsck", "--strict", cwd=site.path) == ""


BOMBS = {
    "an object of 4 GiB": delta_bomb(),
    "140 objects of 31 MiB": many_large(),
    "4 billion objects": pack([], count=2**32 - 1),
    "a blob of 5 GiB": pack([Entry(BLOB, b"\0" * 1000, claimed=5 * 1024**3)]),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_a_pack_that_unfolds_to_gigabytes_is_refused_and_not_kept(bomb: bytes, site: Site) -> None:
    before, packs = site.refs(), packs_of(site)
    with liar(advertised(TIP), line(b"NAK\n") + bomb) as url, refuses("transfer-too-large") as told:
        redirected(site, url).fetch()
    assert "\n" not in told.value.message
    assert site.refs() == before
    assert list((site.path / "uwf" / "incoming").iterdir()) == []
    assert packs_of(site) == packs


def test_refs_and_messages_without_end_are_cut_off(site: Site) -> None:
    many = b"".join(line(b"2" * 40 + b" refs/heads/%060000d" % at) for at in range(500))
    band = advertised(TIP, b"side-band-64k")
    endless = line(b"\2" + b"x" * 60000) * 500
    for greeting, answer in ((many, b""), (band, line(b"NAK\n") + endless)):
        with liar(greeting, answer) as url, refuses("transfer-too-large", match="more than 24m"):
            redirected(site, url).fetch()


class _Files(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(b"1" * 40 + f"\trefs/threads/{OTHER}\n".encode())

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


def test_web_server_that_knows_no_git_is_told(site: Site) -> None:
    told = "it serves files, not git's protocol"
    with serving(_Files) as url, pytest.raises(RemoteFailed, match=told):
        redirected(site, f"{url}/hub.git").fetch()


_MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def test_json_that_takes_gigabytes_of_memory_is_refused_in_little(
    site: Site, tmp_path: Path, hub: Path
) -> None:
    """The file has 31 MiB, which is allowed; as Python values it takes some 700 MB."""
    there = open_store(str(hub))
    tip, objects = thread_tip(site), open_store(str(site.path)).objects
    needed = [objects[each] for each in list_new_objects(objects, tip, ())]
    there.objects.add_objects([(each, None) for each in needed])
    commit = objects[ObjectID(tip.encode())]
    assert isinstance(commit, Commit)
    tree = objects[commit.tree]
    assert isinstance(tree, Tree)
    now = Blob.from_string(b"[" + b"[]," * (10 * 1024 * 1024) + b"[]]")
    tree[b"now.json"] = (0o100644, now.id)
    commit.tree = tree.id
    there.objects.add_objects([(each, None) for each in (now, tree, commit)])
    there.refs.create(f"refs/{next(iter(site.refs('threads')))}", Oid(commit.id.decode()))
    clone = [sys.executable, "-m", "uwf_git", "clone", str(hub), "there.git"]
    # A process counts the memory of the one that forked it as its own, and ours is large.
    command = [sys.executable, "-c", _MEASURE, *clone]

    with open(tmp_path / "told", "w+b") as told:
        subprocess.Popen(command, cwd=tmp_path, stdout=told, stderr=told).wait()

    *_, used = (tmp_path / "told").read_text().split()
    assert "took too much memory" in (tmp_path / "told").read_text()
    assert int(used) // 1024 < 512


def test_a_thread_whose_objects_did_not_all_come_is_named_and_not_tracked(
    site: Site, receiver: Site, git: Git
) -> None:
    tip = thread_tip(site)
    thread = next(iter(site.refs("threads"))).removeprefix("threads/")
    greeting = advertised({f"refs/threads/{thread}": tip})
    with liar(greeting, line(b"NAK\n") + pack_of(site, tip)) as url:
        fetched = redirected(receiver, url).fetch()
    failure = fetched.failure()
    assert failure is not None
    assert failure.exit_status == 5
    assert f"refs/threads/{thread}" in failure.message
    assert "is missing" in failure.message
    assert receiver.refs("threads", "uwf/remotes/origin/threads") == {}
    assert git("fsck", "--strict", "--connectivity-only", cwd=receiver.path) == ""


def test_the_same_thread_comes_whole_the_next_time(site: Site, receiver: Site) -> None:
    tip = thread_tip(site)
    thread = next(iter(site.refs("threads")))
    with liar(advertised({f"refs/{thread}": tip}), line(b"NAK\n") + pack_of(site, tip)) as url:
        redirected(receiver, url).fetch()
    assert redirected(receiver, str(site.path)).fetch().failure() is None
    assert receiver.refs("threads") == site.refs("threads")


def test_a_thread_ref_at_a_blob_is_refused(site: Site, hub: Path, git: Git) -> None:
    blob = git("hash-object", "-w", "--stdin", cwd=hub, stdin="a note").strip()
    git("update-ref", f"refs/threads/{OTHER}", blob, cwd=hub)
    assert [(each.event, each.ref) for each in redirected(site, str(hub)).fetch().reconciled] == [
        ("refused", f"refs/threads/{OTHER}")
    ]
    assert site.find(f"threads/{OTHER}") is None


def test_invalid_names_are_ignored_and_reported(site: Site, hub: Path, git: Git) -> None:
    tip = thread_tip(site)
    git("push", "--quiet", hub, f"{tip}:refs/threads/main", cwd=site.path)
    git("push", "--quiet", hub, f"{tip}:refs/workflows/{OTHER}", cwd=site.path)
    git("push", "--quiet", hub, f"{tip}:refs/threads/{OTHER}/x", cwd=site.path)
    fetched = redirected(site, str(hub)).fetch()
    assert fetched.ignored == [
        f"refs/threads/{OTHER}/x",
        "refs/threads/main",
        f"refs/workflows/{OTHER}",
    ]
    assert fetched.failure() is None
    assert site.refs("uwf/remotes/origin/threads") == {}


def test_names_that_lead_out_of_the_folder_lead_nowhere(site: Site) -> None:
    tip = thread_tip(site)
    names = [
        "refs/threads/../../config",
        "refs/threads/..",
        "refs/workflows/..",
        "refs/workflows/a/b",
    ]
    with liar(advertised(dict.fromkeys(names, tip)), line(b"NAK\n")) as url:
        site = redirected(site, url)
        config = (site.path / "config").read_text()
        assert site.fetch().ignored == names
    assert (site.path / "config").read_text() == config


def test_a_server_that_keeps_silent_is_given_up(site: Site) -> None:
    with liar(b"", silent=True) as url:
        access = Access(RemoteUrl("git", url), site.world.store.config, {}, silence_s=0.05)
        before = socket.getdefaulttimeout()
        with (
            receive_objects(site.world.store) as incoming,
            pytest.raises(RemoteFailed, match="did not answer in time"),
        ):
            fetch_pack(access, lambda _refs: FetchRequest([], []), incoming)
        assert socket.getdefaulttimeout() == before


def test_the_look_of_one_thread_of_python_leaves_the_others_their_limit() -> None:
    before = socket.getdefaulttimeout()
    first, second = SOCKETS.at_most(60), SOCKETS.at_most(50)
    first.__enter__()
    with second:
        first.__exit__(None, None, None)
        assert socket.getdefaulttimeout() == 50
    assert socket.getdefaulttimeout() == before


def test_a_host_that_is_down_is_named(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for scheme in ("git", "http"):
        with pytest.raises(RemoteFailed, match=f"127.0.0.1:{port}"):
            redirected(site, f"{scheme}://127.0.0.1:{port}/hub.git").fetch()


def test_a_path_without_a_repository_is_named(site: Site, tmp_path: Path) -> None:
    for act in (lambda: redirected(site, f"{tmp_path}/nothing").fetch(), site.push):
        with pytest.raises(RemoteFailed, match=f"{tmp_path}/nothing"):
            act()


def test_what_fails_here_is_not_blamed_on_the_remote(site: Site, hub: Path) -> None:
    redirected(site, str(hub)).push()
    (site.path / "uwf" / "incoming").write_text("a file where a folder must be")
    with pytest.raises(FileExistsError):
        fetch_remote(site.world.store, site.world.caller, None)
