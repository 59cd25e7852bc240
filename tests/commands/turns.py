"""Turns under way: what an agent's run leaves while it is played, without an agent.

Owns: the files by which others find it. Knows nothing of: processes.
"""

from pathlib import Path

from commands.world import World

from uwf_git.model.thread_id import ThreadId
from uwf_git.store.history import find_base
from uwf_git.store.refs import Oid


def begin_turn(world: World, thread: ThreadId, *, role: str = "writer", begun: bool = True) -> Oid:
    """Leave what the run of *role*'s agent has at its beginning, and give where it began."""
    base = find_base(world.store, world.snapshot(thread))
    run_dir = Path(world.store.local_path("run", thread, base))
    run_dir.mkdir(parents=True)
    Path(f"{run_dir}.turn").write_text(f"{role} 3QZ82VBH2MY12 nobody")
    if begun:
        (run_dir / "pid").write_text("1\n")
    return base
