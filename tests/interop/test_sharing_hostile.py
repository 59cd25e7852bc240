"""A remote that lies, disconnects or stays silent destroys nothing; the error is one line."""

import socket
import struct
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from commands.sharing import Site, another, make_hub, share
from commands.world import World
from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.objects import ObjectID
from dulwich.pack import write_pack_objects
from interop.liar import advertised, liar, line

from uwf_git.commands.remote.fetch import fetch_remote
from uwf_git.store.git.config import set_config
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.exchange import FetchRequest
from uwf_git.store.remotes.incoming import receive_objects
from uwf_git.store.remotes.transport import Access, fetch_pack
from uwf_git.store.remotes.transport_errors import RemoteFailed
from uwf_git.store.remotes.url import RemoteUrl
from uwf_git.store.store import open_store

Git = Callable[..., str]

OTHER = "01J7K9M2XNPQR5VWBCDF8G3H4T"


@pytest.fixture
def site(world: World, tmp_path: Path) -> Site:
    """Return a store with a thread that is not shared."""
    return share(world, str(tmp_path / "nowhere.git"))[0]


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


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS.keys())
def test_an_invalid_pack_leaves_nothing_behind(pack: bytes, site: Site, git: Git) -> None:
    before = site.refs()
    refs = {f"refs/threads/{OTHER}": "1" * 40}
    with liar(advertised(refs), line(b"NAK\n") + pack) as url:
        if pack:
            with pytest.raises(RemoteFailed):
                redirected(site, url).fetch()
        else:
            assert [each.event for each in redirected(site, url).fetch().reconciled] == ["refused"]
    assert site.refs() == before
    assert site.refs("uwf/remotes/origin/threads") == {}
    assert list((site.path / "objects" / "pack").glob("*")) == []
    assert git("fsck", "--strict", cwd=site.path) == ""


def test_a_thread_whose_objects_did_not_all_come_is_named_and_not_tracked(
    site: Site, world: World, tmp_path: Path, git: Git
) -> None:
    hub = make_hub(tmp_path)
    receiver = another(world, str(hub))
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


def test_the_same_thread_comes_whole_the_next_time(
    site: Site, world: World, tmp_path: Path
) -> None:
    receiver = another(world, str(make_hub(tmp_path)))
    tip = thread_tip(site)
    thread = next(iter(site.refs("threads")))
    with liar(advertised({f"refs/{thread}": tip}), line(b"NAK\n") + pack_of(site, tip)) as url:
        redirected(receiver, url).fetch()
    assert redirected(receiver, str(site.path)).fetch().failure() is None
    assert receiver.refs("threads") == site.refs("threads")


def test_a_thread_ref_at_a_blob_is_refused(
    site: Site, world: World, tmp_path: Path, git: Git
) -> None:
    hub = make_hub(tmp_path)
    blob = git("hash-object", "-w", "--stdin", cwd=hub, stdin="a note").strip()
    git("update-ref", f"refs/threads/{OTHER}", blob, cwd=hub)
    fetched = redirected(site, str(hub)).fetch()
    assert [(each.event, each.ref) for each in fetched.reconciled] == [
        ("refused", f"refs/threads/{OTHER}")
    ]
    assert site.find(f"threads/{OTHER}") is None


def test_invalid_names_are_ignored_and_reported(site: Site, tmp_path: Path, git: Git) -> None:
    hub = make_hub(tmp_path)
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
    config = (site.path / "config").read_text()
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


def test_what_fails_here_is_not_blamed_on_the_remote(site: Site, tmp_path: Path) -> None:
    hub = make_hub(tmp_path)
    redirected(site, str(hub)).push()
    (site.path / "uwf" / "incoming").write_text("a file where a folder must be")
    with pytest.raises(FileExistsError):
        fetch_remote(site.world.store, site.world.caller, None)
