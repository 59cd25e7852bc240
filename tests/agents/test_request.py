from uwf_git.agents.request import AgentRequest


def test_nothing_limits_an_agent_but_its_output() -> None:
    request = AgentRequest(argv=("x",), environment={}, workdir="/", run_dir="/run")

    assert request.timeout_s is None
    assert request.max_output_bytes == 16 * 1024 * 1024
    assert request.kept_fds == ()
    assert request.grace_s > 0
