from cli.program import Uwf


def test_context_is_what_the_next_agent_may_know(uwf: Uwf) -> None:
    thread = uwf.begun()

    context = uwf.json("thread", "context", thread[:26])

    assert (context["thread"], context["role"]["name"]) == (thread, "writer")
    assert (context["attempt"], context["lastError"]) == (1, None)


def test_prompt_is_one_text(uwf: Uwf) -> None:
    thread = uwf.begun()

    ran = uwf("thread", "context", thread, "--prompt")

    assert (ran.status, ran.out.splitlines()[0]) == (0, "# You are writer")
    assert ran.out == uwf("thread", "context", thread, "--prompt", "--format", "text").out


def test_role_can_be_named(uwf: Uwf) -> None:
    thread = uwf.begun()

    assert uwf.json("thread", "context", thread, "--role", "checker")["role"]["name"] == "checker"
    assert uwf("thread", "context", thread, "--role", "nobody").status == 1


def test_context_has_the_agents_own_role(uwf: Uwf) -> None:
    thread = uwf.begun()
    within = {**uwf.session.environ, "UWF_THREAD_ID": thread, "UWF_ROLE": "checker"}
    elsewhere = {**within, "UWF_THREAD_ID": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}

    def role(environ: dict[str, str]) -> str:
        return str(uwf.json("thread", "context", thread, environ=environ)["role"]["name"])

    assert role(within) == "checker"
    assert role(elsewhere) == "writer"


def test_ended_thread_has_no_context(uwf: Uwf) -> None:
    thread = uwf.begun()
    uwf.json("thread", "kill", thread)

    assert uwf("thread", "context", thread).status == 1
