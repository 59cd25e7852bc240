from cli.program import Uwf


def test_it_is_written_to_a_file(uwf: Uwf) -> None:
    thread = uwf.begun()
    ran = uwf("thread", "graph", thread, "--as", "svg", "-o", "thread.svg")
    assert (ran.status, ran.out) == (0, "")
    drawn = (uwf.place / "thread.svg").read_text()
    assert "<title>demo: thread" in drawn
    assert 'class="role is-now"' in drawn
    assert "writer: is next." in drawn
