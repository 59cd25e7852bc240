from cli.program import Uwf


def test_verbs_that_steer_print_the_same_keys(uwf: Uwf) -> None:
    thread = uwf.begun()
    uwf.json("thread", "step", thread)

    documents = [
        uwf.json("thread", "patch", thread, '{"a": 1}'),
        uwf.json("thread", "pause", thread),
        uwf.json("thread", "resume", thread),
        uwf.json("thread", "poke", thread, "--no-step"),
    ]

    assert {tuple(each) for each in documents} == {("workflow", "thread", "head", "status")}
    assert [each["status"] for each in documents] == ["ready", "paused", "ready", "ready"]
