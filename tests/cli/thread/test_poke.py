from cli.program import Uwf


def test_options_of_a_step_that_is_not_taken_are_refused(uwf: Uwf) -> None:
    thread = uwf.begun()
    head = uwf.json("thread", "step", thread)["head"]

    for option in (("--agent", "x"), ("--workdir", "/"), ("--trust",)):
        ran = uwf("thread", "poke", thread, "--no-step", *option)
        assert (ran.status, ran.out) == (2, "")
        assert "--no-step takes none" in ran.err

    assert uwf.json("thread", "show", thread)["head"] == head
