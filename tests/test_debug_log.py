import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git import debug_log
from uwf_git.debug_log import debug, switch_off, switch_on

TAG = "4KNMR2PX"

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def _off_again() -> Iterator[None]:
    yield
    switch_off()


@pytest.fixture
def log(tmp_path: Path) -> Lines:
    """Log to a file, and return a function that reads it."""
    path = tmp_path / "debug.jsonl"
    switch_on(str(path), mask=str)
    return lambda: [json.loads(line) for line in path.read_text().splitlines()]


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Asked:
    """Records that its text was requested."""

    is_asked = False

    def __str__(self) -> str:
        self.is_asked = True
        return "asked"


def test_line_has_the_tag_the_words_the_time_and_the_facts(log: Lines) -> None:
    debug(TAG, "a thing happens", thread="01J", count=3, is_first=True, nothing=None)

    [line] = log()
    assert list(line)[:4] == ["tag", "content", "timestamp", "pid"]
    assert line.pop("timestamp") > 1_600_000_000_000
    assert line == {
        "tag": TAG,
        "content": "a thing happens",
        "pid": os.getpid(),
        "thread": "01J",
        "count": 3,
        "is_first": True,
        "nothing": None,
    }


def test_nothing_is_logged_and_no_fact_is_looked_at_when_it_is_off(
    capfd: pytest.CaptureFixture[str],
) -> None:
    fact = Asked()

    debug(TAG, "a thing happens", fact=fact)

    assert capfd.readouterr() == ("", "")
    assert not fact.is_asked


def test_without_a_file_it_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    switch_on(None, mask=str)
    debug(TAG, "a thing happens")

    told = capfd.readouterr()
    assert told.out == ""
    assert json.loads(told.err)["tag"] == TAG


def test_fact_cannot_pass_itself_off_as_the_tag(log: Lines) -> None:
    debug(TAG, "a thing happens", tag="00000000", content="x", timestamp=0, pid=0)

    [line] = log()
    assert (line["tag"], line["content"], line["pid"]) == (TAG, "a thing happens", os.getpid())


def test_every_text_is_masked_also_within_others(tmp_path: Path) -> None:
    path = tmp_path / "log"
    switch_on(str(path), mask=lambda text: text.replace("hunter22", "[masked]"))

    debug(TAG, "x", plain="hunter22", deep={"hunter22": [("hunter22",)]}, error=OSError("hunter22"))

    told = path.read_text()
    assert "hunter22" not in told
    assert told.count("[masked]") == 4


def test_key_at_the_cut_is_masked_before_the_text_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    switch_on(str(path), mask=lambda text: text.replace("hunter22", "[masked]"))

    debug(TAG, "x", long="." * 995 + "hunter22")

    assert "hunt" not in path.read_text()


# Elsewhere the failure logger itself crashed, and hid the failure.


def loop() -> list[Any]:
    looped: list[Any] = []
    looped.append(looped)
    return looped


@pytest.mark.parametrize(
    "fact",
    [
        Unprintable(),
        loop(),
        {Unprintable(): Unprintable()},
        b"\xff",
        "\udcff",
        float("nan"),
        {1, 2},
    ],
    ids=["unprintable", "loop", "in-a-dict", "bytes", "surrogate", "nan", "set"],
)
def test_fact_that_cannot_be_written_costs_only_its_own_words(fact: object, log: Lines) -> None:
    debug(TAG, "x", fact=fact, rest=1)

    [line] = log()
    assert (line["tag"], line["rest"]) == (TAG, 1)
    assert "fact" in line


def test_mask_that_fails_lets_nothing_through(tmp_path: Path) -> None:
    def fail(text: str) -> str:
        raise ValueError(text)

    path = tmp_path / "log"
    switch_on(str(path), mask=fail)
    debug(TAG, "x", fact="secret")

    assert json.loads(path.read_text())["fact"] == "(str that cannot be shown)"


@pytest.mark.parametrize("place", ["/dev/full", "no/such/folder/log", "."])
def test_file_that_takes_nothing_is_no_failure(place: str) -> None:
    switch_on(place, mask=str)

    debug(TAG, "x")


def test_pipe_without_a_reader_does_not_block(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    switch_on(str(pipe), mask=str)

    debug(TAG, "x")


SCRIPT = """
import sys
from uwf_git.debug_log import debug, switch_on
switch_on(None, mask=str)
for number in range(1000):
    debug("4KNMR2PX", "x", number=number, more="y" * 500)
print("done", flush=True)
"""


@pytest.mark.parametrize("kind", ["full", "closed", "nobody-reads"])
def test_standard_error_that_takes_nothing_is_no_failure(kind: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stderr = {"full": os.open("/dev/full", os.O_WRONLY), "nobody-reads": writing}.get(kind)
    close = "2>&-" if kind == "closed" else ""
    command = ["sh", "-c", f'exec "$@" {close}', "sh", sys.executable, "-c", SCRIPT]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, check=False)
    os.close(writing)

    assert (ran.returncode, ran.stdout) == (0, b"done\n")


def test_stream_without_a_number_is_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    class Notebook:
        text = ""

        def write(self, text: str) -> None:
            self.text += text

        def flush(self) -> None:
            pass

    notebook = Notebook()
    monkeypatch.setattr(sys, "stderr", notebook)
    switch_on(None, mask=str)
    debug(TAG, "x")
    monkeypatch.setattr(sys, "stderr", None)
    debug(TAG, "y")

    assert json.loads(notebook.text)["content"] == "x"


@given(st.recursive(st.none() | st.integers() | st.floats() | st.text() | st.binary(), st.lists))
def test_whatever_the_fact_the_line_is_one_json_object(fact: object) -> None:
    lines: list[str] = []
    debug_log._LOG.mask = str  # noqa: SLF001 (a file for each of a hundred examples takes long)
    debug_log._LOG.write = lines.append  # noqa: SLF001 (see above)

    debug(TAG, "x", fact=fact)

    [line] = lines
    assert line.isascii()
    assert line.count("\n") == 1
    assert json.loads(line)["tag"] == TAG
