"""A hub that others push to at the same time, that refuses, or that has no git."""

from pathlib import Path

import pytest
from commands.sharing import Shared, Sites, another, refs_of, share
from commands.world import Git, World
from interop.hub import BAD, make_hub, push_what_is_wrong
from interop.servers import asking, git_daemon, git_over_http
from programs import write_program
from refusing import is_refused

from uwf_git.errors import Refused
from uwf_git.store.git.config import set_config
from uwf_git.store.remotes.transport import RemoteFailed


def refuse(hub: Path, script: str, *, hook: str = "pre-receive") -> None:
    path = hub / "hooks" / hook
    path.parent.mkdir(exist_ok=True)
    write_program(path, script)


def test_a_hook_s_refusal_is_reported_in_its_words_and_the_others_go_through(
    shared: Shared, hub: Path
) -> None:
    site, bad = shared
    good = [site.world.start() for _count in range(3)]
    refuse(hub, f"if grep {bad}; then echo 'we do not like it' >&2; exit 1; fi")
    failure = site.push().failure()
    assert isinstance(failure, Refused)
    assert is_refused(failure, "push-refused")
    assert failure.exit_status == 1
    assert failure.facts["refs"] == [f"refs/threads/{bad}"]
    assert "we do not like it" in failure.message
    assert set(refs_of(hub, "threads")) == {f"threads/{each}" for each in good}
    assert site.find(f"uwf/remotes/origin/threads/{bad}") is None


def test_an_update_hook_refuses_one_ref(shared: Shared, hub: Path) -> None:
    site, thread = shared
    refuse(hub, 'case "$1" in refs/workflows/*) exit 1;; esac', hook="update")
    assert [done.unit.name for done in site.push().refused] == ["refs/workflows/demo"]
    assert list(refs_of(hub)) == [f"threads/{thread}"]


def test_a_refused_move_leaves_the_thread_active_there(shared: Shared, hub: Path) -> None:
    site, thread = shared
    other = site.world.start()
    site.push()
    site.end(thread)
    site.end(other)
    before = refs_of(hub, "threads")[f"threads/{other}"]
    refuse(hub, f'test "$1" != refs/archive/{other}', hook="update")
    assert [done.unit.name for done in site.push().refused] == [f"refs/archive/{other}"]
    assert refs_of(hub, "threads", "archive") == {
        f"threads/{other}": before,
        f"archive/{thread}": site.find(f"archive/{thread}"),
    }


def test_a_server_without_atomic_pushes_gets_the_archive_first(shared: Shared, hub: Path) -> None:
    site, thread = shared
    site.push()
    site.end(thread)
    set_config(f"{hub}/config", "receive.advertiseAtomic", "false")
    refuse(hub, f"echo $1 >> {hub}/order", hook="update")
    assert [change.status for change in site.push().pushed] == ["archived", "deleted"]
    assert (hub / "order").read_text().split() == [
        f"refs/archive/{thread}",
        f"refs/threads/{thread}",
    ]
    assert set(refs_of(hub, "threads", "archive")) == {f"archive/{thread}"}


def test_a_push_after_a_faster_one_has_a_hint_to_fetch_first(sites: Sites, world: World) -> None:
    site, other, thread = sites
    other.step(thread)
    other.push()
    quiet = site.world.start()
    site.step(thread)
    pushed = site.push()
    failure = pushed.failure()
    assert is_refused(failure, "fetch-first")
    assert failure.exit_status == 4
    assert thread in failure.message
    assert [change.ref for change in pushed.pushed] == [f"refs/threads/{quiet}"]


def test_a_diverged_thread_is_kept_on_both_sides(sites: Sites) -> None:
    site, other, thread = sites
    other.step(thread)
    other.push()
    site.step(thread, ok=True)
    here, elsewhere = site.find(f"threads/{thread}"), other.find(f"threads/{thread}")
    failure = site.fetch().failure()
    assert failure is not None
    assert failure.exit_status == 4
    assert str(here) in failure.message
    assert str(elsewhere) in failure.message
    assert f"uwf thread fork {thread} --at {here}" in (failure.hint or "")
    assert site.find(f"threads/{thread}") == here
    assert site.find(f"uwf/remotes/origin/threads/{thread}") == elsewhere
    assert is_refused(site.push().failure(), "push-diverged")


def test_an_archive_elsewhere_wins_over_a_push(sites: Sites, hub: Path) -> None:
    site, other, thread = sites
    other.end(thread)
    other.push()
    site.step(thread)
    assert is_refused(site.push().failure(), "fetch-first")
    assert [each.event for each in site.fetch().reconciled] == ["diverged"]
    assert is_refused(site.push().failure(), "push-diverged")
    assert set(refs_of(hub, "threads", "archive")) == {f"archive/{thread}"}


def test_pushes_and_fetches_at_once_lose_nothing(
    shared: Shared, world: World, hub: Path, git: Git
) -> None:
    site, _thread = shared
    site.push()
    sites = [site, *(another(world, str(hub), name=f"s{number}") for number in range(3))]
    threads = {each.world.start() for each in sites for _count in range(3)}
    with git_daemon(hub.parent) as url:
        for each in sites:
            set_config(f"{each.path}/config", "remote.origin.url", f"{url}/hub.git")
        words = [["push"], ["fetch"], ["fetch"]]
        running = [
            each.world.process(*act, env={"UWF_REPO": str(each.path)})
            for each in sites
            for act in words
        ]
        said = [process.communicate()[1] for process in running]
        # A push that was overtaken by another's of the same ref has nothing to lose.
        assert {process.returncode for process in running} <= {0, 4}, said
        for each in sites:
            each.push()
        for each in sites:
            assert each.fetch().failure() is None
    assert {f"threads/{thread}" for thread in threads} <= set(refs_of(hub))
    for each in sites:
        assert each.refs() == refs_of(hub)
        assert git("fsck", "--strict", cwd=each.path) == ""


LOGIN = "somebody:pass%20word"


@pytest.mark.parametrize("way", ["url", "helper", "nobody"])
def test_a_password_is_sent_and_not_shown(
    way: str, shared: Shared, hub: Path, git: Git, tmp_path: Path
) -> None:
    site, thread = shared
    with git_over_http(hub.parent, login="somebody:pass word") as url:
        host = url.removeprefix("http://")
        asking(site, f"http://{LOGIN}@{host}/hub.git" if way == "url" else f"{url}/hub.git")
        if way == "helper":
            kept = tmp_path / "kept"
            git("config", "--global", "credential.helper", f"store --file={kept}", cwd=tmp_path)
            kept.write_text(f"http://{LOGIN}@{host}\n")
        if way == "nobody":
            with pytest.raises(RemoteFailed, match="asks for a name and password") as failed:
                site.push()
            assert "credential" in (failed.value.hint or "")
            return
        assert site.push().failure() is None
        assert site.fetch().failure() is None
        assert set(refs_of(hub)) == {f"threads/{thread}", "workflows/demo"}
    with pytest.raises(RemoteFailed) as down:
        site.fetch()
    told = f"{down.value.message} {down.value.hint} {down.value.facts}"
    assert "pass" not in told.replace("password", "")
    assert "somebody" not in told


def test_a_wrong_password_is_reported_and_forgotten(
    shared: Shared, hub: Path, git: Git, tmp_path: Path
) -> None:
    site, _thread = shared
    with git_over_http(hub.parent, login="somebody:else") as url:
        asking(site, f"{url}/hub.git")
        kept = tmp_path / "kept"
        git("config", "--global", "credential.helper", f"store --file={kept}", cwd=tmp_path)
        kept.write_text(f"http://me:wrong@{url.removeprefix('http://')}\n")
        with pytest.raises(RemoteFailed, match="refused the name and password"):
            site.push()
    assert kept.read_text() == ""


@pytest.fixture
def guarded(tmp_path: Path) -> Path:
    """Return a hub with the hooks of a shared store."""
    return make_hub(tmp_path).path


def test_a_hub_with_our_hooks_takes_a_thread_from_its_beginning_to_its_end(
    guarded: Path, world: World, git: Git
) -> None:
    site, thread = share(world, str(guarded))
    assert site.push().failure() is None
    other = another(world, str(guarded))
    other.end(thread)
    late = world.start()
    assert other.push().failure() is None
    assert site.push(late).failure() is None
    assert [each.event for each in site.fetch().reconciled] == ["archived"]
    assert other.fetch().failure() is None
    assert site.refs() == other.refs() == refs_of(guarded)
    assert set(refs_of(guarded, "threads", "archive")) == {f"archive/{thread}", f"threads/{late}"}
    assert git("fsck", "--strict", cwd=guarded) == ""


def test_a_hub_with_our_hooks_says_what_is_wrong_and_takes_the_rest(
    guarded: Path, world: World
) -> None:
    site, thread = share(world, str(guarded))
    assert push_what_is_wrong(site, f"threads/{thread}").facts["refs"] == [f"refs/threads/{BAD}"]
    assert set(refs_of(guarded)) == {f"threads/{thread}", "workflows/demo"}
