from cli.program import Uwf


def test_number_of_events_is_natural(uwf: Uwf) -> None:
    assert uwf("thread", "read", uwf.begun(), "--last", "0").status == 2
