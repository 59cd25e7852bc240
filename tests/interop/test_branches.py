"""Branches as git sees them: drawn as FORMAT.md draws them, whole, and however many there are."""

from pathlib import Path

from commands.flows import CHECKS, plays
from commands.world import Git, World
from dulwich.objects import Blob, Commit, Tree

from uwf_git.model.names import Oid
from uwf_git.store.store import Store

FORMAT = Path(__file__).parents[2] / "uwf_git/store/FORMAT.md"
MANY = 1_000


def test_git_draws_branches_as_the_format_says(world: World, git: Git) -> None:
    thread = world.begun(CHECKS)
    world.finish(thread, plays)
    ref, where = f"refs/archive/{thread}", world.store.path

    graph = git("log", "--graph", "--format=%s", ref, cwd=where)
    own = git("log", "--first-parent", "--format=%s", ref, cwd=where)

    drawn = [line.rstrip() for line in graph.splitlines()]
    assert "\n".join(drawn) in FORMAT.read_text(encoding="utf-8")
    assert own.rstrip() in FORMAT.read_text(encoding="utf-8")
    assert git("fsck", "--strict", "--no-dangling", cwd=where) == ""


def test_git_takes_a_join_of_a_thousand_branches(empty: Store, tmp_path: Path, git: Git) -> None:
    """FORMAT.md joins in one commit, however many branches there are."""
    blob = Blob.from_string(b"x")
    tree = Tree()
    tree.add(b"x", 0o100644, blob.id)
    commits: list[Commit] = []

    def commit(said: str, *parents: Commit) -> Commit:
        made = Commit()
        made.tree, made.parents = tree.id, [each.id for each in parents]
        made.author = made.committer = b"uwf <uwf@uwf>"
        made.author_time = made.commit_time = 1_760_000_000
        made.author_timezone = made.commit_timezone = 0
        made.message = said.encode()
        commits.append(made)
        return made

    split = commit("split")
    join = commit("join", split, *[commit(f"branch {number}", split) for number in range(MANY)])
    empty.objects.add_objects([(each, None) for each in (blob, tree, *commits)])
    ref = "refs/threads/01J00000000000000000000001"
    assert empty.refs.create(ref, Oid(join.id.decode()))
    where = empty.path

    graph = git("log", "--graph", "--format=%s", ref, cwd=where)
    assert sum("branch " in line for line in graph.splitlines()) == MANY
    assert git("log", "--first-parent", "--format=%s", ref, cwd=where) == "join\nsplit\n"
    git("gc", "--quiet", cwd=where)
    git("commit-graph", "write", "--reachable", cwd=where)
    assert git("fsck", "--strict", "--no-dangling", cwd=where) == ""
    hub = tmp_path / "strict.git"
    git("init", "--quiet", "--bare", str(hub), cwd=tmp_path)
    git("config", "transfer.fsckObjects", "true", cwd=hub)
    git("push", "--quiet", str(hub), ref, cwd=where)
    assert git("rev-parse", f"{ref}^{MANY + 1}", cwd=hub).strip() == join.parents[-1].decode()
