from cli.program import Uwf

from uwf_git.store.git.config import set_config


def test_a_mirror_refuses_to_record_until_it_is_repaired(uwf: Uwf, thread: str) -> None:
    set_config(f"{uwf.session.repo}/config", "remote.origin.url", "/x")
    set_config(f"{uwf.session.repo}/config", "remote.origin.fetch", "+refs/*:refs/*")
    for words in (("thread", "step", thread), ("push",), ("fetch",)):
        ran = uwf(*words).refused(1, "`uwf remote repair`")
        assert ran.err.splitlines()[0].startswith("error: remote origin is a mirror: ")
    assert uwf.json("thread", "show", thread)["depth"] == 0
    assert uwf.json("verify")["problems"] == []
    assert uwf("remote", "repair", "--format", "text").out == "repaired origin\n"
    assert uwf("remote", "repair", "--format", "text").out == "no remote is a mirror\n"
    assert uwf.json("thread", "step", thread)["status"] == "ready"
