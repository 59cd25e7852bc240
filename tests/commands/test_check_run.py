from uwf_git.commands.check_run import Site
from uwf_git.commands.trouble import Trouble
from uwf_git.store.refs import Oid

SITE = Site("refs/threads/x", Oid("1" * 40))


def test_trouble_says_where_and_what_to_do() -> None:
    hint = (
        f"see it with `git show {SITE.commit}`; another copy of this store may have it whole: "
        "`git fetch`"
    )

    assert SITE.trouble("it is wrong", node="N", path="a.b") == Trouble(
        "it is wrong", hint, SITE.ref, SITE.commit, "N", "a.b"
    )
    assert SITE.trouble("it is wrong", hint="mend it").hint == "mend it"
