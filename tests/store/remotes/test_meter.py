from io import BytesIO

from refusing import refuses

from uwf_git.store.remotes.transport import ErrorOutput, Meter


def test_what_is_said_is_counted_and_what_is_sent_is_not() -> None:
    meter = Meter(10)
    read = meter.counted(BytesIO(b"x" * 100).read)
    for _part in range(5):
        meter.allow(read(8))
    assert read(10) == b"x" * 10
    with refuses("transfer-too-large", match="more than 10 bytes of refs and messages"):
        read(1)


def test_error_output_is_read_up_to_a_limit() -> None:
    output = ErrorOutput(BytesIO(b"fatal: no\n" + b"x" * 1024**2))
    first, rest = output.readlines()
    assert first == b"fatal: no\n"
    assert len(rest) < 100_000
