from uwf_git.model.definition.definition import AgentSpec
from uwf_git.model.node import canonical


def test_payload_holds_only_what_is_set() -> None:
    assert AgentSpec("uwf-hermes").as_payload() == {"command": "uwf-hermes"}


def test_payload_holds_all_that_is_set() -> None:
    agent = AgentSpec("a", protocol="flags", timeout=1.5, retries=0, backoff=2, env={})
    assert agent.as_payload() == {
        "command": "a",
        "protocol": "flags",
        "timeout": 1.5,
        "retries": 0,
        "backoff": 2,
        "env": {},
    }


def test_payload_can_be_kept_in_a_node() -> None:
    payload = AgentSpec("a", timeout=60, env={"LANG": "C"}).as_payload()
    assert canonical(payload) == payload
