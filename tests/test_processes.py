import os
import signal
import subprocess

import pytest

from uwf_git.surroundings import list_processes, read_process, read_process_start

pytestmark = pytest.mark.skipif(
    not os.path.exists("/proc/self/stat"), reason="there is no /proc here"
)


def test_name_of_a_process_may_hold_anything(tmp_path: object) -> None:
    name = os.path.join(str(tmp_path), "a) R 1 (b")
    os.symlink("/bin/sleep", name)

    with subprocess.Popen([name, "60"]) as process:
        assert read_process_start(process.pid) is not None
        process.kill()


def test_number_without_a_process_has_no_start() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert read_process_start(process.pid) is None


def test_process_that_has_ended_and_is_not_reaped_holds_nothing() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        assert read_process_start(process.pid) is not None
        process.send_signal(signal.SIGKILL)
        # Looks at it without reaping it.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert os.path.exists(f"/proc/{process.pid}/stat")
        assert read_process_start(process.pid) is None


def test_process_tells_its_parent_and_group() -> None:
    with subprocess.Popen(["/bin/sleep", "60"], start_new_session=True) as child:
        found = read_process(child.pid)
        listed = list_processes()
        child.kill()

    assert found is not None
    assert (found.parent, found.group, found.has_ended) == (os.getpid(), child.pid, False)
    assert listed is not None
    assert found in listed
    assert read_process(child.pid) is None
