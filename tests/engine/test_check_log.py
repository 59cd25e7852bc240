from uwf_git.engine.check_log import find_last_output, write_section


def test_output_of_the_newest_check_is_found_after_all_others() -> None:
    log = (
        b"$ make\nthe agent's own\n" + write_section("make", b"one") + write_section("lint  x", b"")
    )
    assert log == b"$ make\nthe agent's own\n\n$ make\none\n\n$ lint x\n"
    assert find_last_output(log.decode(), ("make",)) == "one\n\n$ lint x\n"
    assert find_last_output(log.decode(), ("make", "lint  x")) == ""
    assert find_last_output(log.decode(), ("other",)) == ""
