import re

from cli.program import ANSWER, Uwf


def test_run_in_the_background_returns_when_it_is_driven(uwf: Uwf) -> None:
    script = f"until [ -e go ]; do sleep 0.01; done; {ANSWER}"

    driver = uwf.json("run", uwf.file(), "-p", "x", "--agent", uwf.agent(script), "--background")

    assert list(driver) == ["workflow", "thread", "pid", "log"]
    uwf("thread", "run", driver["thread"], "--background").refused(4, f"pid {driver['pid']}")
    late = uwf("thread", "wait", driver["thread"], "--timeout", "0")
    (uwf.place / "go").touch()
    [rest] = uwf.json("thread", "wait", driver["thread"], "--timeout", "30")
    assert (late.status, rest["status"]) == (4, "completed")
    with open(driver["log"], encoding="utf-8") as log:
        told = log.read()
    assert re.search(r"^\S+Z step 2 checker: What was said\.", told, re.MULTILINE)


def test_modules_in_the_work_directory_are_not_imported_by_a_driver(uwf: Uwf) -> None:
    (uwf.place / "click.py").write_text("raise SystemExit('not this one')")

    driver = uwf.json("run", uwf.file(), "-p", "x", "--agent", uwf.agent(), "--background")

    [rest] = uwf.json("thread", "wait", driver["thread"], "--timeout", "30")
    assert rest["status"] == "completed"
