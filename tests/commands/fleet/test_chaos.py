"""Workers killed and frozen, the driver killed, the hub away: each step is there once."""

import random
import signal
import time
from contextlib import ExitStack
from pathlib import Path

from commands.fleet.machines import SPLIT, SPLIT_STEPS, Field, ended
from commands.fleet.test_dask import Cluster, stop_below

THREADS = 3
LONGEST_S = 30


def test_whatever_dies_nothing_is_lost_or_doubled(field: Field, tmp_path: Path) -> None:
    dice = random.Random(7)
    a = field.machine("a")
    threads = [a.begin(SPLIT) for _ in range(THREADS)]
    field.let("sleep 0.4")
    cut = 0
    until = time.monotonic() + LONGEST_S
    with ExitStack() as stack:
        cluster = Cluster(tmp_path, stack)
        driver = cluster.drive(a)
        stack.enter_context(ended(driver))
        number = 2
        while driver.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
            if dice.random() > 0.02:
                continue
            victim = dice.choice(["kill", "freeze", "driver", "hub"])
            if victim == "driver":
                driver.kill()
                driver.communicate()
                driver = cluster.drive(a)
                stack.enter_context(ended(driver))
            elif victim == "hub":
                field.hub.rename(tmp_path / "away")
                time.sleep(0.05)
                (tmp_path / "away").rename(field.hub)
            else:
                worker = cluster.workers.pop(dice.randrange(len(cluster.workers)))
                stop_below(worker.pid, signal.SIGKILL if victim == "kill" else signal.SIGSTOP)
                # At most the one that it was at.
                cut += 1
                number += 1
                cluster.workers.append(cluster.work(f"m{number}"))
        out, err = driver.communicate(timeout=120)
        assert driver.returncode == 0, err + out
    a.drive("--on", "local:2")
    assert field.paid() <= THREADS * SPLIT_STEPS + cut
    for thread in threads:
        assert field.log(thread)[-1].startswith("end: completed after 3 steps")
    assert len(field.refs("refs/archive")) == 6 * THREADS
    assert not field.refs("refs/threads")
    assert not a.json("verify")["problems"]
