from uwf_git.engine.log_lines import find_last_output, find_outputs, write_section


def test_output_of_the_newest_check_is_found_after_all_others() -> None:
    log = (
        b"$ make\nthe agent's own\n" + write_section("make", b"one") + write_section("lint  x", b"")
    )
    assert log == b"$ make\nthe agent's own\n\n$ make\none\n\n$ lint x\n"
    assert find_last_output(log.decode(), ("make",)) == "one\n\n$ lint x\n"
    assert find_last_output(log.decode(), ("make", "lint  x")) == ""
    assert find_last_output(log.decode(), ("other",)) == ""


def test_checks_that_printed_something_are_told_with_their_headings() -> None:
    parts = [("make", b""), ("lint  x", b"two\nlines\n"), ("count", b"3")]
    log = (
        b"$ count\nthe agent's own\n" + b"".join(write_section(*part) for part in parts)
    ).decode()
    commands = ("make", "lint  x", "count")

    assert find_outputs(log, commands) == "$ lint x\ntwo\nlines\n$ count\n3"
    assert find_outputs(log, ("make", "lint  x", "count", "never run")) == find_outputs(
        log, commands
    )
    assert find_outputs(write_section("make", b"").decode(), ("make",)) == ""
    assert find_outputs("the agent's own", commands) == ""
    assert find_outputs(log, ()) == ""
