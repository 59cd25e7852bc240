"""Threads travel over every transport, and are whole where they arrive."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from commands.sharing import another, refs_of, share
from commands.world import Git, World, read_thread
from interop.servers import git_daemon, git_over_http, ssh_here

from uwf_git.commands.inspect.show import show_thread

TRANSPORTS = ["path", "file", "daemon", "http", "ssh", "scp"]


@pytest.fixture(params=TRANSPORTS)
def hub(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    world: World,
    git: Git,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[Path, str]]:
    """Return an empty bare repository that checks pushes, and its URL."""
    path = tmp_path / "hubs" / "the hub.git"
    git("init", "--quiet", "--bare", path, cwd=tmp_path)
    git("config", "receive.fsckObjects", "true", cwd=path)
    quoted = "the%20hub.git"
    with ExitStack() as stack:
        if request.param == "path":
            url = str(path)
        elif request.param == "file":
            url = f"file://{path.parent}/{quoted}"
        elif request.param == "daemon":
            # It takes paths as they are, and ours has a space.
            path = path.rename(path.with_name("hub.git"))
            url = f"{stack.enter_context(git_daemon(path.parent))}/hub.git"
        elif request.param == "http":
            url = f"{stack.enter_context(git_over_http(path.parent))}/{quoted}"
        else:
            command = ssh_here(tmp_path)
            monkeypatch.setenv("GIT_SSH_COMMAND", f"exec {command}")
            world.caller = world.caller._replace(environ=dict(os.environ))
            path = path.rename(path.with_name("hub.git"))
            url = f"ssh://me@host:2222{path}" if request.param == "ssh" else f"me@host:{path}"
        yield path, url


def fsck(git: Git, *paths: Path) -> None:
    for path in paths:
        assert git("fsck", "--strict", "--full", "--no-progress", cwd=path) == ""


def test_a_thread_goes_to_a_hub_on_to_another_store_and_comes_back_ended(
    hub: tuple[Path, str], world: World, git: Git
) -> None:
    path, url = hub
    site, thread = share(world, url)
    pushed = site.push()
    assert [change.status for change in pushed.pushed] == ["created", "created"]
    assert pushed.failure() is None

    other = another(world, url)
    assert other.refs() == site.refs() == refs_of(path)
    assert read_thread(other.world.store, thread) == read_thread(world.store, thread)
    assert show_thread(other.world.store, thread)["depth"] == 1

    other.end(thread)
    assert [change.status for change in other.push().pushed] == ["archived", "deleted"]
    assert [each.event for each in site.fetch().reconciled] == ["archived"]
    assert site.refs("threads", "archive") == other.refs("threads", "archive")
    assert git("for-each-ref", "--format=%(refname)", "refs/threads", "refs/archive", cwd=path) == (
        f"refs/archive/{thread}\n"
    )
    assert site.push().pushed == other.push().pushed == []
    fsck(git, path, site.path, other.path)
