"""A step with a real agent, killed at every moment: the agent has run once."""

from pathlib import Path

import pytest
from commands.killed import kill_everywhere
from commands.world import DEMO, World

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.inspect.read import render_thread
from uwf_git.store.threads.history import list_preserved

WORK = """\
echo run >>"$UWF_REPO/runs"
echo '{"text": "left"}' >left.json
printf '{"meta": {"text": "words", "ok": true}, "content": "What was said."}'
"""
CHECK = 'echo check >>"$UWF_REPO/checks"'
CHECKED = DEMO.replace(
    "    systemPrompt: Write.\n",
    "    systemPrompt: Write.\n    checks: [./check]\n    outputFile: left.json\n",
)


@pytest.mark.parametrize("source", [DEMO, CHECKED], ids=["plain", "checked"])
def test_a_step_killed_anywhere_has_its_agent_run_once(source: str, world: World) -> None:
    world.put(source)
    world.program(CHECK, name="check")
    thread = world.start(world.program(WORK))
    # How long the agent took is in its node, and so the folder of its object is another each
    # time. All are there, so that the moments are nearly the same.
    for number in range(256):
        Path(world.store.path, "objects", f"{number:02x}").mkdir(exist_ok=True)

    def step(copy: World) -> object:
        return copy.step(thread, agent_player(lambda _log: None))

    def again(copy: World) -> None:
        depth = copy.snapshot(thread).record.depth
        assert depth in {0, 1}
        # The first agent may still be at work: this waits for it, and takes its result.
        stepped = copy.step(thread, agent_player(lambda _log: None))
        assert stepped.depth == depth + 1
        # What was recorded is not kept a second time.
        assert list_preserved(copy.store, thread) == []
        assert Path(copy.store.path, "runs").read_text().splitlines() == ["run"] * stepped.depth
        if source == CHECKED:
            assert Path(copy.store.path, "checks").exists()
            assert "**text**: left" in "".join(render_thread(copy.store, thread))

    assert kill_everywhere(world, step, again, spare=3) > 50
