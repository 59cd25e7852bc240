import itertools

import click
from click.testing import CliRunner

from uwf_git.cli.thread.run import DriveOptions, drive_options, waiting_document
from uwf_git.model.thread import Waiting


@click.command
@drive_options
def parse(how: DriveOptions) -> DriveOptions:
    """Return the options as they were parsed."""
    return how


def read(words: list[str]) -> DriveOptions:
    made = CliRunner().invoke(parse, words, standalone_mode=False)
    assert made.exception is None
    told: DriveOptions = made.return_value
    return told


TYPED = [
    DriveOptions(until, trust, wait, stream, background=True, timestamps=False, jobs=2)
    for until in (None, "writer", "--wait", "")
    for trust, wait, stream in itertools.product([False, True], repeat=3)
]


def test_driver_in_the_background_reads_the_same_options() -> None:
    for typed in TYPED:
        assert read(typed.words()) == typed._replace(background=False)


def test_all_is_off_unless_typed() -> None:
    assert read([]) == DriveOptions(None, *[False] * 5)


def test_options_say_what_they_are_called() -> None:
    flags = ["--trust", "--wait", "--stream", "--background", "--timestamps"]

    assert read([*flags, "--until", "writer"]) == DriveOptions("writer", *[True] * 5)


def test_end_of_a_wait_is_reported_where_there_is_one() -> None:
    assert waiting_document(Waiting("writer", 77)) == {"role": "writer", "until": 77}
    assert waiting_document(Waiting("checker")) == {"role": "checker"}
