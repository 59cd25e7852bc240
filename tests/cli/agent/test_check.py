import os
from pathlib import Path

from cli.program import Uwf

ANSWER = (
    """echo '{"meta": {"ok": true}, "content": "Here.", "usage": {"turns": 1}}'; echo working >&2"""
)


def test_user_without_a_store_can_check_as_well(uwf: Uwf) -> None:
    assert uwf.json("agent", "check", uwf.agent(ANSWER), repo=None)["meta"] == {"ok": True}
    assert not Path(os.environ["HOME"], ".uwf").exists()
