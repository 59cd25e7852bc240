"""A map of workflows, driven by commands that are killed by chance: each turn is played once."""

from pathlib import Path

from commands.torture import Torture, find_all
from commands.world import make_store
from conftest import Draws

from uwf_git.store.threads.heads import ARCHIVE

ITEMS, KILLS, MOST_DRIVES = 12, 30, 100

INNER = """\
name: inner
description: Two at once, then one twice.
root:
  type: sequential
  nodes:
    - {type: map, over: '[1, 2]', as: half, nodes: [{type: agent, agentId: half}]}
    - {type: loop, maxIterations: 2, nodes: [{type: agent, agentId: again}]}
"""

OUTER = f"""\
name: outer
description: A workflow for each item.
initialState: {{items: {list(range(ITEMS))}}}
root:
  type: sequential
  nodes:
    - type: map
      over: state.items
      as: item
      output: results
      nodes: [{{type: agent, agentId: first}}, {{type: workflow, use: inner}}]
    - {{type: agent, agentId: last}}
"""

TURNS = ITEMS * (1 + 2 + 2) + 1


def test_each_turn_of_a_map_of_workflows_is_played_once(tmp_path: Path, draws: Draws) -> None:
    torture = Torture(tmp_path, draws.chance, {"mine": make_store(tmp_path / "store.git").path})
    place = torture.stores["mine"]
    for name, text in (("inner", INNER), ("outer", OUTER)):
        (tmp_path / f"{name}.yaml").write_text(text)
        assert torture.do("mine", "workflow", "put", f"{name}.yaml") == 0
    words = ("-p", "Go.", "--agent", str(torture.agent))
    assert torture.do("mine", "thread", "start", "outer", *words) == 0
    (thread,) = place.threads()
    for _drive in range(MOST_DRIVES):
        drive = torture.run("mine", "thread", "run", thread, "--jobs", "6")
        if torture.killed < KILLS:
            # After so many lines of agents, not seconds: a fast machine would end before the kills.
            torture.kill_later(drive, draws.chance.randrange(8), draws.chance.uniform(0, 0.05))
        torture.crowd([drive], size=1)
        if place.refs(ARCHIVE + thread):
            break

    began, finished = torture.read_runs()
    steps = find_all(place).steps
    assert torture.killed >= KILLS // 3
    assert len(began) == len(finished) == TURNS
    assert steps.keys() == finished
    assert [nodes for nodes in steps.values() if len(nodes) > 1] == []
    assert torture.do("mine", "verify") == 0
    place.git("fsck", "--strict", "--full")
    print(f"{torture.killed} drives killed, {TURNS} turns played once")  # noqa: T201 - for `pytest -rA`
