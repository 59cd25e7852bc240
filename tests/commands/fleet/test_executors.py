"""Executors by their address."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands.fleet.machines import PLAIN, Field, Machine, finished

from uwf_git.commands.fleet.executors import DaskExecutor
from uwf_git.commands.fleet.shared_drive import Job, run_thread


def test_a_scheduler_elsewhere_needs_tls(a: Machine) -> None:
    err = finished(a.start("drive", "--on", "tcp://192.0.2.1:8786"), 1)
    assert "whoever reaches a scheduler runs anything" in err
    for address in ("local:0", "nothing:there", "nonsense", "tcp://[::1"):
        err = finished(a.start("drive", "--on", address), 2)
        assert "names no executor" in err


def test_one_module_imports_dask() -> None:
    package = Path(__file__).parents[3] / "uwf_git"
    imports = re.compile(r"\b(?:import|from) distributed\b")
    found = [each for each in package.rglob("*.py") if imports.search(each.read_text())]
    assert [each.name for each in found] == ["executors.py"]


def test_an_executor_that_has_ended_is_told(a: Machine) -> None:
    a.begin(PLAIN)
    broken = "class Broken:\n    def submit(self, *words):\n        raise RuntimeError('gone')\n"
    (a.home / "broken.py").write_text(broken)
    err = finished(a.start("drive", "--on", "broken:Broken"), 1)
    assert "takes no more tasks: gone" in err


def test_a_killed_worker_is_replaced_and_an_idle_one_ends_with_its_driver() -> None:
    script = """
import os
from uwf_git.commands.fleet.executors import open_executor
with open_executor("local:1", insecure=False) as made:
    print(type(made.submit(os._exit, 1).exception()).__name__)
    print(made.submit(abs, -1).result(), flush=True)
    os._exit(0)
"""
    # A worker that is left holds the pipe.
    argv = [sys.executable, "-c", script]
    ran = subprocess.run(argv, check=True, stdout=subprocess.PIPE, timeout=60)
    assert ran.stdout.split() == [b"BrokenProcessPool", b"1"]


@pytest.mark.parametrize("value", [None, ""])
def test_no_process_here_imports_what_lies_in_the_directory(
    value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    if value is not None:
        monkeypatch.setenv("PYTHONSAFEPATH", value)
    driver, checkout = tmp_path / "driver.py", tmp_path / "checkout"
    driver.write_text("""
import os
from uwf_git.commands.fleet.executors import open_executor
if __name__ == "__main__":
    with open_executor("local:1", insecure=False) as made:
        print(made.submit(os.getenv, "PYTHONSAFEPATH").result())
    print(os.getenv("PYTHONSAFEPATH"))
""")
    checkout.mkdir()
    # Neither the worker nor the tracker of semaphores, which import it, has done so before.
    (checkout / "signal.py").write_text("open('ran', 'w')\n")

    ran = subprocess.run(
        [sys.executable, driver], cwd=checkout, check=False, stdout=subprocess.PIPE, text=True
    )

    assert [each.name for each in checkout.iterdir()] == ["signal.py"]
    assert ran.stdout == f"{value}\n{value}\n"


class _Lost:
    """A client of Dask, and its only task, whose result cannot be had any more."""

    status = "finished"

    def scheduler_info(self, **_words: int) -> dict[str, Any]:
        return {"workers": {}}

    def submit(self, *_words: Any, **_more: Any) -> "_Lost":
        return self

    def add_done_callback(self, tell: Callable[["_Lost"], None]) -> None:
        tell(self)

    def result(self) -> None:
        raise OSError("the connection is gone")


def test_a_task_whose_result_cannot_be_had_is_over() -> None:
    told = DaskExecutor(_Lost()).submit(run_thread, Job("hub", "thread", 3, 1))
    assert isinstance(told.exception(timeout=0), OSError)


def test_the_steps_of_a_machine_that_was_silent_for_a_while_count(field: Field, a: Machine) -> None:
    a.begin(PLAIN)
    (a.home / "shy.py").write_text(
        "from concurrent.futures import ProcessPoolExecutor\n"
        "class Shy(ProcessPoolExecutor):\n"
        "    sent = []\n"
        "    def submit(self, *words):\n"
        "        self.sent.append(super().submit(*words))\n"
        "        return self.sent[-1]\n"
        "    def list_silent(self, _ttl_s):\n"
        "        return [each for each in self.sent[:1] if each.running()]\n"
    )
    assert a.drive("--on", "shy:Shy")["steps"] == field.paid() == 3


@pytest.mark.parametrize("made", ["Client(cluster)", "Client(cluster).get_executor(pure=False)"])
def test_a_function_may_make_a_cluster_of_dask(a: Machine, made: str) -> None:
    a.begin(PLAIN)
    (a.home / "cluster.py").write_text(
        "import dask\n"
        "from distributed import Client, LocalCluster\n"
        "dask.config.set(temporary_directory='.')\n"
        "def executor():\n"
        "    cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)\n"
        f"    return {made}\n"
    )
    assert a.drive("--on", "cluster:executor")["threads"] == {"completed": 1}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise RuntimeError('no sbatch')", "no sbatch"),
        ("return None", "'NoneType' object has no attribute 'submit'"),
    ],
)
def test_a_function_that_makes_no_executor_is_told(a: Machine, body: str, said: str) -> None:
    (a.home / "cluster.py").write_text(f"def executor():\n    {body}\n")
    err = finished(a.start("drive", "--on", "cluster:executor"), 2)
    assert f"'cluster:executor' names no executor: {said}" in err


def test_a_hub_that_no_worker_reaches_ends_the_drive(field: Field, a: Machine) -> None:
    a.begin(PLAIN)
    end = a.drive("--on", "local:1", "--hub", str(field.place / "nowhere"), status=1)
    assert end["threads"] == {"ready": 1}
    assert field.paid() == 0
