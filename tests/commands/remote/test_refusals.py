"""What a fetch refuses leaves nothing behind; git is the judge."""

from pathlib import Path

import pytest
from commands.forging import WRITER, forge, tip_of, twin_role
from commands.sharing import Sites, failure_of, refs_of
from commands.world import World
from refusing import refuses
from store.conftest import Git

from uwf_git.commands.remote.fetch import judge_fetched
from uwf_git.errors import StoreDamaged
from uwf_git.store import refs
from uwf_git.store.git.config import set_config
from uwf_git.store.refs import Refs
from uwf_git.store.remotes.remotes import SharedRefs

DEMO_REF = "refs/workflows/demo"


def break_thread(hub: Path, git: Git, thread: str) -> str:
    """Put a commit that git itself rejects on top of a thread of *hub*; return it."""
    ref = f"refs/threads/{thread}"
    tip = git("rev-parse", ref, cwd=hub).strip()
    raw = git("cat-file", "commit", tip, cwd=hub)
    bad = f"{raw.partition(chr(10))[0]}\nparent {tip}\nauthor <x 1 +0\ncommitter y\n\nx\n"
    words = ("hash-object", "-w", "--literally", "-t", "commit", "--stdin")
    made = git(*words, cwd=hub, stdin=bad).strip()
    (hub / ref).write_text(f"{made}\n")
    return made


def test_nothing_of_what_is_refused_stays(sites: Sites, hub: Path, git: Git) -> None:
    site, other, thread = sites
    before = site.refs("uwf")
    good = other.world.start()
    other.push()
    bad = break_thread(hub, git, thread)

    assert [(each.event, each.ref) for each in site.fetch().reconciled] == [
        ("refused", f"refs/threads/{thread}"),
        ("created", f"refs/threads/{good}"),
    ]
    store = Path(site.world.store.path)
    assert git("fsck", "--strict", cwd=store) == ""
    assert bad not in git("cat-file", "--batch-all-objects", "--batch-check", cwd=store)
    assert site.refs("uwf").items() >= before.items()
    # Once it is repaired there, it arrives.
    (hub / "refs/threads" / thread).unlink()
    other.step(thread)
    other.push()
    assert [each.event for each in site.fetch().reconciled] == ["moved"]
    assert git("fsck", "--strict", cwd=store) == ""


def test_workflow_that_is_refused_leaves_nothing(sites: Sites, hub: Path, git: Git) -> None:
    site, _other, thread = sites
    (hub / "refs/workflows/odd").write_text((hub / "refs/threads" / thread).read_text())

    failure_of(site.fetch(), "refs-refused", StoreDamaged)
    assert site.find("uwf/remotes/origin/workflows/odd") is None
    assert git("fsck", "--strict", cwd=Path(site.world.store.path)) == ""


def test_what_comes_together_has_one_payload_for_a_name(world: World) -> None:
    world.put()
    thread = world.start()
    *_, forged = forge(world.store, f"refs/threads/{thread}", {0: twin_role(world.store)})
    wanted = {
        ("threads", str(thread)): forged,
        ("workflows", "demo"): tip_of(world.store, DEMO_REF),
    }
    for (kind, name), tip in wanted.items():
        assert world.store.refs.delete(f"refs/{kind}/{name}", seen=tip)

    judged = judge_fetched(world.store, SharedRefs({}, {}, {}), wanted)
    assert judged.workflows == {(DEMO_REF, wanted["workflows", "demo"])}
    (refused,) = judged.refused
    assert refused.finding is not None
    assert refused.finding.message.startswith(f"node {WRITER} has two payloads")


def test_many_threads_are_taken_over_by_two_writes_of_refs(
    sites: Sites, hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, other, _thread = sites
    new = [other.world.start() for _number in range(3)]
    other.push()
    monkeypatch.setattr(refs, "_MANY", 2)
    written: list[bytes] = []

    def replace_and_count(_refs: Refs, content: bytes) -> None:
        written.append(content)
        (site.path / "packed-refs").write_bytes(content)

    monkeypatch.setattr(Refs, "_replace_packed", replace_and_count)

    assert {each.event for each in site.fetch().reconciled} == {"created"}
    assert len(written) == 2
    assert site.refs() == refs_of(hub)
    assert not any((site.path / "refs/threads" / thread).exists() for thread in new)
    assert not list((site.path / "uwf/locks").glob(f"{new[0]}*"))


def test_more_new_refs_than_are_accepted_are_not_fetched(sites: Sites) -> None:
    site, other, thread = sites
    for _number in range(2):
        other.world.start()
    other.step(thread)
    other.push()
    before = site.refs("threads", "uwf/remotes/origin/threads")
    set_config(f"{site.path}/config", "uwf.maxFetchRefs", "2")
    with refuses("transfer-too-large") as refused:
        site.fetch()
    assert refused.value.facts["setting"] == "uwf.maxFetchRefs"
    assert site.refs("threads", "uwf/remotes/origin/threads") == before
    set_config(f"{site.path}/config", "uwf.maxFetchRefs", "3")
    assert len(site.fetch().reconciled) == 3
    assert site.fetch().unchanged == 4
