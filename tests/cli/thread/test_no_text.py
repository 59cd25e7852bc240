"""An argument whose bytes are no text: no verb records it, nor changes anything."""

from cli.program import Uwf

BYTES = "\udcff"


def test_what_is_no_text_is_refused_by_each_verb_and_changes_nothing(uwf: Uwf) -> None:
    thread = uwf.begun()
    uwf.json("thread", "step", thread)
    file = uwf.file("graph: []\n", name="more.yaml")
    before = uwf.json("thread", "show", thread)
    for words in (
        ("start", "demo", "-p", BYTES),
        ("start", "demo", "-p", "x", "--agent", BYTES),
        ("run", thread, "--agent", BYTES),
        ("amend", thread, "--agent", BYTES),
        ("amend", thread, "--workflow", BYTES),
        ("amend", thread, "--agent", "x", "-m", BYTES),
        ("append", thread, file, "-m", BYTES),
        ("patch", thread, BYTES),
        ("patch", thread, '{"a": 1}', "-m", BYTES),
        ("pause", thread, "-m", BYTES),
        ("poke", thread, "-m", BYTES),
        ("poke", thread, "--agent", BYTES),
        ("retry", thread, "-m", BYTES),
        ("kill", thread, "-m", BYTES),
    ):
        ran = uwf("thread", *words)

        assert (ran.status, ran.out) == (1, ""), words
        assert "is not UTF-8 text" in ran.err, words
    assert [each["thread"] for each in uwf.json("thread", "list")] == [thread]
    assert uwf.json("thread", "show", thread) == before
