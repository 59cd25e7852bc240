"""A hub behind a web server: its hooks are heard, and no password goes astray."""

import os
import subprocess
from pathlib import Path

import pytest
from commands.sharing import another, refs_of, share
from commands.world import Git, World, says
from interop.hub import BAD, TOLD, make_hub, push_what_is_wrong
from interop.servers import asking, git_over_http, redirecting

from uwf_git.store.git.config import add_config
from uwf_git.store.remotes.transport import RemoteFailed


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """Return a hub with the hooks of a shared store, which takes pushes from the web."""
    hub = make_hub(tmp_path)
    hub.set("http.receivepack", "true")
    return hub.path


def test_hub_on_the_web_is_told_of_a_thread_and_says_what_is_wrong(
    hub: Path, world: World, git: Git
) -> None:
    with git_over_http(hub.parent) as url:
        site, thread = share(world, f"{url}/hub.git")
        push_what_is_wrong(site, f"threads/{thread}")
        tip = site.find(f"threads/{thread}")
        plain = ["git", "push", f"{url}/hub.git", f"{tip}:refs/threads/{BAD}"]
        ran = subprocess.run(plain, cwd=site.path, capture_output=True, text=True, check=False)
        assert ran.returncode != 0
        assert TOLD in ran.stderr
    assert set(refs_of(hub)) == {f"threads/{thread}", "workflows/demo"}
    assert git("fsck", "--strict", cwd=hub) == ""


@pytest.mark.parametrize("by_git", [False, True], ids=["uwf", "git"])
def test_large_push_comes_in_pieces(by_git: bool, hub: Path, world: World, git: Git) -> None:  # noqa: FBT001 (a parameter of the test)
    with git_over_http(hub.parent) as url:
        site, thread = share(world, f"{url}/hub.git")
        # Random digits do not shrink below this; git sends more than this in chunks.
        world.step(thread, says({"ok": True}, os.urandom(3_000_000).hex()))
        if by_git:
            words = ["-c", "http.postBuffer=65536", "push", "--quiet", "origin"]
            git(*words, f"refs/threads/{thread}", "refs/workflows/demo", cwd=site.path)
        else:
            assert site.push().failure() is None
        assert another(world, f"{url}/hub.git").refs("threads") == site.refs("threads")
    assert set(refs_of(hub)) == {f"threads/{thread}", "workflows/demo"}


LOGIN = "me:secret"


@pytest.mark.parametrize("how", ["url", "header"])
def test_redirect_is_followed_and_the_password_stays_behind(
    how: str, hub: Path, world: World
) -> None:
    asked: list[str | None] = []
    with git_over_http(hub.parent, asked=asked) as there, redirecting(there) as url:
        named = url.replace("://", f"://{LOGIN}@") if how == "url" else url
        site, thread = share(world, f"{named}/hub.git")
        asking(site, f"{named}/hub.git")
        if how == "header":
            # As `actions/checkout` and others set it, for one host.
            name = f"http.{url}/.extraHeader"
            add_config(f"{site.path}/config", name, "Authorization: Bearer secret")
        assert site.push().failure() is None
        assert site.fetch().failure() is None
    assert set(refs_of(hub)) == {f"threads/{thread}", "workflows/demo"}
    assert set(asked) == {None}


@pytest.mark.parametrize("target", ["{here}/more", "file:///etc", "gopher://127.0.0.1:1"])
def test_redirect_to_nowhere_is_one_line(target: str, hub: Path, world: World) -> None:
    with redirecting(target) as url:
        site, _thread = share(world, f"{url}/hub.git")
        for act in (site.fetch, site.push):
            with pytest.raises(RemoteFailed) as failed:
                act()
            assert "\n" not in failed.value.message
            assert len(failed.value.message) < 400
    assert refs_of(hub) == {}
