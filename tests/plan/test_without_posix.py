"""Plan files, stop server and hook in a Python from which all is taken that Windows lacks.

The lint (`plans_need_no_posix` in hygiene.py) reads their own modules; this also runs what they
import.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = r'''
import _socket

# Windows has sockets of the Internet only, and Python makes pairs of them.
del _socket.socketpair
import os, select, signal, socket, sys

GONE = {
    os: """fork forkpty getuid geteuid getgid getegid getgroups uname killpg getpgid getpgrp setsid
        setpgid getsid register_at_fork mkfifo mknod chown fchown lchown statvfs fstatvfs pread
        pwrite preadv pwritev sched_getaffinity sched_yield openpty ttyname tcgetpgrp nice waitid
        wait wait3 wait4 posix_spawn posix_spawnp sendfile copy_file_range memfd_create setxattr
        getxattr chroot sysconf confstr fchdir fdatasync lockf initgroups readv writev sync pipe2
        O_NOFOLLOW O_NONBLOCK O_CLOEXEC O_DIRECTORY O_SYNC O_NOCTTY O_ASYNC EX_OK""",
    signal: """SIGKILL SIGHUP SIGCHLD SIGUSR1 SIGALRM SIGTSTP SIGCONT SIGSTOP SIGPIPE SIGQUIT
        pthread_sigmask setitimer alarm pause sigwait""",
    socket: "AF_UNIX SO_REUSEPORT",
    select: "epoll poll",
}
for module, names in GONE.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
for name in ("fcntl", "pwd", "grp", "resource", "termios", "tty", "pty", "syslog", "readline"):
    sys.modules[name] = None

import json
from uwf_git.plan import project_files, stop_hook
from uwf_git.plan.hooks import StopServer

work = sys.argv[1]
found = project_files.find_plans(work)
texts = [project_files.read_plan(work, plan) for plan in found.plans]
problems = project_files.list_plan_problems(work, found)
taken = []
with StopServer(taken.append, 0) as server:
    stop_hook.STATE_FILE = os.path.join(work, "state.json")
    state = {"phase": "planning", "address": server.address, "port": server.port}
    project_files.replace_whole(stop_hook.STATE_FILE, json.dumps(state).encode())
    stop_hook.tell()
print(json.dumps([[*found.plans[0]], texts, problems, [each.phase for each in taken]]))
'''


def test_plan_files_server_and_hook(tmp_path: Path) -> None:
    plans = tmp_path / "docs/plans"
    plans.mkdir(parents=True)
    (plans / "000-准备.md").write_bytes("\ufeff写\r\n".encode())
    command = [sys.executable, "-c", _SCRIPT, str(tmp_path)]

    ran = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == [
        ["docs/plans/000-准备.md", 0, "准备"],
        ["写\n"],
        [],
        ["planning"],
    ]


@pytest.mark.parametrize("name", ["fork", "O_NONBLOCK"])
def test_what_is_taken_is_missed(name: str) -> None:
    script = _SCRIPT.partition("import json")[0] + f"os.{name}"

    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)

    assert b"AttributeError" in ran.stderr
