"""Real git reads the threads that commands make, tidies the store between steps, and draws them."""

import os
import subprocess
from pathlib import Path

from commands.world import Git, World, read_thread
from interop.told import Told
from store.format_page import section

from uwf_git.commands.cas import verify_nodes
from uwf_git.commands.control.answer import kill_thread
from uwf_git.model.builtin import TEXT
from uwf_git.model.node import Node
from uwf_git.store.lookup import list_nodes
from uwf_git.store.nodes import decode_node


def path_of(node: Node) -> str:
    suffix = ".md" if node.type == TEXT else ".json"
    return f"nodes/{node.hash[0]}/{node.hash[1]}/{node.hash[2:]}{suffix}"


def fsck(git: Git, path: str, *options: str) -> str:
    return git("fsck", "--strict", "--full", "--no-progress", *options, cwd=Path(path))


def test_fsck_finds_nothing_and_nothing_is_left_over(told: Told, git: Git) -> None:
    kill_thread(told.world.store, told.world.caller, told.active, reason="enough\n---\n")
    told.world.start()
    # Without a word: every object is one that git would write, and a ref needs it.
    assert fsck(git, told.path) == ""


def test_git_shows_the_nodes_of_a_thread(told: Told, git: Git) -> None:
    snapshot = told.world.snapshot(told.ended)
    head, start = snapshot.get_head_node(), snapshot.get_start()
    first = [node for node in snapshot.walk_chain() if "prev" in node.payload][-1]
    content = snapshot.get_node(first.payload["content"]["$ref"])

    def shown(path: str) -> bytes:
        return git("show", f"refs/archive/{told.ended}:{path}", cwd=Path(told.path)).encode()

    for node in (head, start, content):
        assert decode_node(node.hash, shown(path_of(node))) == node
    assert shown("head.json") == shown(path_of(head))
    assert shown("start.json") == shown(path_of(start))
    assert shown(path_of(content)).endswith(b"\n---\n# A poem\r\n\r\nRoses.")


def test_the_log_of_a_thread_is_one_line_of_events(told: Told, git: Git) -> None:
    command = ("log", "--graph", "--format=%s | %an <%ae> | %cn")
    ref = f"refs/archive/{told.ended}"
    drawn = git(*command, "--first-parent", ref, cwd=Path(told.path))
    who, address = git("log", "-1", "--format=%cn%n%ce", ref, cwd=Path(told.path)).split("\n")[:2]
    assert drawn.splitlines() == [
        f"* end: completed after 4 steps | {who} <{address}> | {who}",
        f"* checker: What was said. | checker <nobody@uwf> | {who}",
        f"* writer: What was said. | writer <nobody@uwf> | {who}",
        f"* checker: What was said. | checker <nobody@uwf> | {who}",
        f"* retry: may try again | {who} <{address}> | {who}",
        f"* checker: attempt 1 failed: exit status 7 | checker <nobody@uwf> | {who}",
        f"* writer: A poem | writer <nobody@uwf> | {who}",
        f"* start: Do it, please. | {who} <{address}> | {who}",
    ]
    assert git(*command, ref, cwd=Path(told.path)) == drawn


def test_both_dates_are_one_and_never_go_back(told: Told, git: Git) -> None:
    dates = git(
        "log", "--format=%ad %cd", "--date=raw", f"refs/archive/{told.ended}", cwd=Path(told.path)
    )
    rows = [line.split() for line in dates.splitlines()]
    assert all(row[:2] == row[2:] and row[1] == "+0000" for row in rows)
    seconds = [int(row[0]) for row in rows]
    assert seconds == sorted(seconds, reverse=True)


def tidy_up(git: Git, world: World) -> None:
    """Let git pack and prune all it can, and open the store again."""
    git("pack-refs", "--all", "--prune", cwd=Path(world.store.path))
    git("gc", "--quiet", "--prune=now", cwd=Path(world.store.path))
    world.reopen()


def test_gc_and_pack_refs_keep_everything_and_threads_go_on(told: Told, git: Git) -> None:
    world = told.world
    refs, read = git("for-each-ref", cwd=Path(told.path)), read_thread(world.store, told.active)
    nodes = sorted(list_nodes(world.store))

    tidy_up(git, world)

    assert not list(Path(told.path, "refs").rglob("01J*")), "nothing was packed"
    assert git("for-each-ref", cwd=Path(told.path)) == refs
    assert read_thread(world.store, told.active) == read
    assert sorted(list_nodes(world.store)) == nodes
    assert verify_nodes(world.store, [str(name) for name in nodes]).findings == ()
    assert world.step(told.active).role == "writer"
    assert world.put().changed
    world.finish(told.active)
    assert git("for-each-ref", "refs/threads", cwd=Path(told.path)) == ""
    assert fsck(git, told.path, "--no-dangling") == ""


def test_the_commands_of_the_format_page_work(told: Told) -> None:
    block = section("With plain git").partition("```sh\n")[2].partition("```")[0]
    for command in block.splitlines():
        ran = subprocess.run(
            ["/bin/sh", "-ec", command],
            cwd=told.path,
            env={**os.environ, "REF": f"refs/threads/{told.active}"},
            capture_output=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout or command.startswith("git fsck"), command
