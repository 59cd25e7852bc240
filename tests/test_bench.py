"""The benchmark runs: it is no test, so nobody else notices that it broke."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from bench.deep import QUICK, Bench
from bench.run import PARTS
from bench.world import open_world

RUN = Path(__file__).parent / "bench" / "run.py"


# Whether it measures at all.
LITTLE = QUICK._replace(
    rounds=1,
    warm_up=0,
    rate_steps=2,
    depths=(2, 5, 9),
    depth_rounds=1,
    large=(9,),
    crowd=50,
    drivers=2,
    branches=4,
    page=5,
    fleet=2,
    agent_s=0.2,
    ttl_s=2,
)


@pytest.mark.parametrize("part", PARTS)
def test_part_measures_something(
    part: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # A short name: Chromium has its socket there, whose path may have 107 characters.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("b")))
    with open_world() as world:
        tables = PARTS[part](Bench(world, LITTLE))
    rows = [row for table in tables for row in table.rows]
    assert rows
    failures = [row.failure for row in rows if row.failure is not None]
    assert [text for text in failures if not text.startswith("skipped: ")] == []


def test_part_without_a_browser_says_what_is_missing(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, RUN, "--quick", "--json", "paint"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path), "PATH": str(tmp_path), "UWF_CHROMIUM": ""},
    )
    assert ran.returncode == 0, ran.stderr
    [table] = json.loads(ran.stdout)["parts"]["paint"]
    [row] = table["rows"]
    assert re.fullmatch(
        r"skipped: no (Playwright|chromium); tests/browser/install\.sh gets it", row["failure"]
    )
