from collections.abc import Callable
from pathlib import Path

import pytest
from commands.flows import split_checks
from commands.sharing import Site, Sites, another, hub
from commands.world import World, fails
from refusing import refuses

from uwf_git.commands.caller import Caller
from uwf_git.commands.control.answer import (
    kill_thread,
    patch_thread,
    pause_thread,
    resume_thread,
    retry_thread,
)
from uwf_git.commands.control.append import AppendRequest, append_to_thread
from uwf_git.commands.control.change_rules import AmendRequest, amend_thread, poke_thread
from uwf_git.commands.step.ending import fast_forward_from_tracking
from uwf_git.model.names import ThreadId
from uwf_git.store.remotes.remotes import add_remote
from uwf_git.store.store import Store, open_store

__all__ = ["hub"]

Before = Callable[[Site, ThreadId], object]

MORE = b"""\
roles:
  doc-writer: {systemPrompt: Document it.}
moderator:
  - {from: checker, to: doc-writer, when: meta.ok}
  - {from: doc-writer, to: $END}
"""


def track(site: Site, other: Site, thread: ThreadId) -> None:
    """Let the tracking refs of *site* say what *other* has, as a plain `git fetch` does."""
    other.push()
    for place, oid in other.refs("threads", "archive").items():
        # The tracking refs of a fetch, without the update of the local refs.
        refs = open_store(str(site.path)).refs
        ref = f"refs/uwf/remotes/origin/{place}"
        seen = refs.find(ref)
        if seen == oid:
            continue
        assert refs.create(ref, oid) if seen is None else refs.advance(ref, seen=seen, to=oid)
    folder = site.path / "objects" / "info"
    folder.mkdir(exist_ok=True)
    (folder / "alternates").write_text(f"{other.path}/objects\n")


def take_over(site: Site, thread: ThreadId) -> bool:
    return fast_forward_from_tracking(open_store(str(site.path)), thread)


def test_a_thread_that_ended_elsewhere_may_not_be_stepped(sites: Sites) -> None:
    site, other, thread = sites
    other.end(thread)
    site.step(thread, ok=True)
    track(site, other, thread)
    with refuses("ended-elsewhere") as ended:
        take_over(site, thread)
    here = site.find(f"threads/{thread}")
    assert ended.value.exit_status == 4
    assert f"uwf thread fork {thread} --at {here}" in (ended.value.hint or "")


def test_an_invalid_archive_at_a_remote_stops_no_step(sites: Sites) -> None:
    site, other, thread = sites
    other.step(thread)
    site.step(thread, ok=True)
    track(site, other, thread)
    refs = open_store(str(site.path)).refs
    there = refs.find(f"refs/uwf/remotes/origin/threads/{thread}")
    assert there is not None
    # A server without hooks accepts this from any client.
    refs.create(f"refs/uwf/remotes/origin/archive/{thread}", there)
    assert not take_over(site, thread)


def test_work_that_waits_is_recorded_first(sites: Sites) -> None:
    site, other, thread = sites
    tip = site.find(f"threads/{thread}")
    other.step(thread)
    track(site, other, thread)
    run = site.path / "uwf" / "run" / thread / str(tip)
    run.mkdir(parents=True)
    (run / "exit").write_text("0\n")
    assert not take_over(site, thread)
    assert site.find(f"threads/{thread}") == tip


def test_a_tracking_ref_that_is_broken_stops_no_step(sites: Sites) -> None:
    site, _other, thread = sites
    path = site.path / "refs" / "uwf" / "remotes" / "origin" / "threads" / thread
    path.write_text("nonsense\n")
    assert not take_over(site, thread)


def one_step(site: Site, thread: ThreadId) -> None:
    site.step(thread)


def paused(site: Site, thread: ThreadId) -> None:
    site.world.pause(thread)


def failed(site: Site, thread: ThreadId) -> None:
    site.world.fail(thread, fails("no key"), command="mine", workdir=str(site.world.place))


STEERED: dict[str, tuple[Before, Callable[[tuple[Store, Caller], ThreadId], object]]] = {
    "pause": (one_step, lambda at, thread: pause_thread(*at, thread)),
    "resume": (paused, lambda at, thread: resume_thread(*at, thread)),
    "retry": (failed, lambda at, thread: retry_thread(*at, thread)),
    "patch": (one_step, lambda at, thread: patch_thread(*at, thread, {"a": 1})),
    "poke": (one_step, lambda at, thread: poke_thread(*at, thread)),
    "limits": (
        one_step,
        lambda at, thread: amend_thread(*at, AmendRequest(thread, limits={"maxSteps": 9})),
    ),
    "append": (one_step, lambda at, thread: append_to_thread(*at, AppendRequest(thread, MORE))),
    "kill": (one_step, lambda at, thread: kill_thread(*at, thread)),
}


@pytest.mark.parametrize("verb", STEERED)
def test_each_verb_that_steers_goes_on_from_what_a_remote_has(verb: str, sites: Sites) -> None:
    site, other, thread = sites
    before, steer = STEERED[verb]
    before(other, thread)
    track(site, other, thread)
    there = other.find(f"threads/{thread}")
    site.world.reopen()

    steer((site.world.store, site.world.caller), thread)

    assert site.world.snapshot(thread).commit.parents == (there,)
    assert site.push().failure() is None
    assert other.fetch().failure() is None


def test_a_branch_that_has_failed_elsewhere_is_retried(world: World, hub: Path) -> None:
    at = split_checks(world)
    first, _second = at.children
    add_remote(world.store, "origin", str(hub), cwd=str(world.place))
    site = Site(world)
    site.push()
    other = another(world, str(hub))
    failed(other, first)
    track(site, other, first)
    world.reopen()

    world.retry(at.thread)

    assert world.snapshot(first).commit.parents == (other.find(f"threads/{first}"),)
