"""docs/machines.md as it stands: workers that `ssh` starts, and a scheduler that needs TLS."""

import json
import os
import pwd
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from commands.at_work import wait_until
from commands.fleet.machines import SPLIT, SPLIT_STEPS, Field, ended
from interop.servers import free_port
from interop.sshd import NEEDS_SSHD, reach_sshd

pytestmark = NEEDS_SSHD

CONFIG = """\
temporary-directory: {home}
distributed:
  comm:
    require-encryption: true
    tls:
      ca-file: {place}/cert.pem
      scheduler: {{cert: {place}/cert.pem, key: {place}/key.pem}}
      worker: {{cert: {place}/cert.pem, key: {place}/key.pem}}
      client: {{cert: {place}/cert.pem, key: {place}/key.pem}}
"""


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field(tmp_path)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def start(stack: ExitStack, argv: list[str], home: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        argv,
        cwd=home,
        env={**os.environ, "HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    stack.enter_context(ended(process))
    return process


def make_home(place: Path, name: str) -> Path:
    """Make the home of a machine, with the certificate of the cluster."""
    home = place / name
    (home / ".config" / "dask").mkdir(parents=True)
    (home / ".config" / "dask" / "tls.yaml").write_text(CONFIG.format(place=place, home=home))
    return home


def test_machines_by_ssh_with_certificates(
    field: Field, stack: ExitStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -subj /CN=uwf"
    subprocess.run(made.split(), cwd=tmp_path, check=True, capture_output=True)
    port = free_port()
    address, dask = f"tls://127.0.0.1:{port}", [sys.executable, "-m", "dask"]
    where = ["--protocol", "tls", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    head = make_home(tmp_path, "head")
    start(stack, [*dask, "scheduler", *where], head)
    wait_until(lambda: answers(port), "the scheduler does not listen")
    for name in ("m1", "m2"):
        there = dict(os.environ) | {"HOME": str(make_home(tmp_path, name))}
        command = f"{reach_sshd(tmp_path / f'ssh-{name}', there)}/key"
        user = pwd.getpwuid(os.getuid()).pw_name
        slots = ["--nworkers", "1", "--nthreads", "1", "--no-dashboard"]
        worker = shlex.join([*dask, "worker", address, *slots])
        start(stack, ["sh", "-c", f"exec {command} -tt {user}@there {shlex.quote(worker)}"], head)

    a = field.machine("a")
    a.begin(SPLIT)
    field.let("sleep 0.5")
    monkeypatch.setenv("DASK_CONFIG", str(head / ".config" / "dask"))
    with a.start("drive", "--on", address, "--poll", "0.3") as driver:
        out, err = driver.communicate()
    assert driver.returncode == 0, err
    end = json.loads(out)
    assert end["threads"] == {"completed": 6}
    assert end["steps"] == field.paid() == SPLIT_STEPS
    assert all(list((tmp_path / each / ".uwf/hubs").iterdir()) for each in ("m1", "m2"))

    monkeypatch.delenv("DASK_CONFIG")
    with a.start("drive", "--on", address) as driver:
        _out, err = driver.communicate()
    assert driver.returncode == 1
    assert "name certificates in Dask's configuration" in err


def answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
