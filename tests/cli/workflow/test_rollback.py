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
