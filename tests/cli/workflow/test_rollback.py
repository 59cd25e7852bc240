from cli.program import Uwf
from commands.world import DEMO

BETTER = DEMO.replace("Write.", "Write well.")


def test_rollback_prints_what_is_there_now_and_what_was(uwf: Uwf) -> None:
    first = uwf.json("workflow", "put", uwf.file())
    second = uwf.json("workflow", "put", uwf.file(BETTER))

    done = uwf.json("workflow", "rollback", "demo", "-m", "It was too good.")

    assert done["workflow"] == first["workflow"]
    assert (done["restored"], done["replaced"]) == (first["version"], second["workflow"])
    assert list(done) == ["name", "workflow", "version", "restored", "replaced"]
    assert uwf.json("workflow", "show", "demo")["workflow"] == first["workflow"]
    row = uwf.json("workflow", "history", "demo")[0]
    assert (row["event"], row["reason"]) == ("rollback", "It was too good.")


def test_version_may_be_named_by_either_hash(uwf: Uwf) -> None:
    first = uwf.json("workflow", "put", uwf.file())
    second = uwf.json("workflow", "put", uwf.file(BETTER))

    for name in (first["workflow"][:6], second["version"][:8]):
        uwf.json("workflow", "rollback", "demo", name)
    assert uwf.json("workflow", "show", "demo")["workflow"] == second["workflow"]


def test_invalid_value_is_refused_in_one_line(uwf: Uwf) -> None:
    for words, said in [
        (["other"], "there is no workflow other"),
        (["demo"], "has no version before its newest"),
        (["demo", "nope"], "has no version 'nope'"),
        (["demo", "0" * 13], "has no version"),
        (["demo", ""], "has no version ''"),
        (["demo", "-m", "\udcff"], "is not UTF-8 text"),
    ]:
        uwf.json("workflow", "put", uwf.file())

        ran = uwf("workflow", "rollback", *words)

        assert (ran.status, ran.out) == (1, "")
        assert said in ran.err
        assert len(uwf.json("workflow", "history", "demo")) == 1
