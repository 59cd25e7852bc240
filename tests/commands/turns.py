"""The files of a turn under way, without an agent."""

from pathlib import Path

from commands.world import World

from uwf_git.model.names import Oid, ThreadId


def begin_turn(world: World, thread: ThreadId, *, role: str = "writer", begun: bool = True) -> Oid:
    """Write the run files of a turn of *role* that has begun; return the commit it began after."""
    base = world.snapshot(thread).turn_start
    run_dir = Path(world.store.local_path("run", thread, base))
    run_dir.mkdir(parents=True)
    Path(f"{run_dir}.turn").write_text(f'{role} 3QZ82VBH2MY12 nobody\n{{"command": "nobody"}}\n')
    if begun:
        (run_dir / "pid").write_text("1\n")
    return base
