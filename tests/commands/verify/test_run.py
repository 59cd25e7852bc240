from uwf_git.commands.verify.history import Finding, Location
from uwf_git.store.oid import Oid

SITE = Location("refs/threads/x", Oid("1" * 40))


def test_trouble_says_where_and_what_to_do() -> None:
    hint = (
        f"see it with `git show {SITE.commit}`; another copy of this store may have it whole: "
        "`git fetch`"
    )

    assert SITE.finding("it is wrong", node="N", path="a.b") == Finding(
        "it is wrong", hint, SITE.ref, SITE.commit, "N", "a.b"
    )
    assert SITE.finding("it is wrong", hint="mend it").hint == "mend it"
