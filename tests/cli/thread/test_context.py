from cli.program import Uwf


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


def test_only_the_last_steps_are_printed(uwf: Uwf) -> None:
    refused = """
        case "$UWF_ROLE" in
        checker) printf '{"meta": {"ok": false}}' ;;
        *) printf '{"meta": {"text": "x"}}' ;;
        esac
    """
    thread = uwf.begun(uwf.agent(refused, name="strict"))
    uwf.json("thread", "run", thread, "--max-steps", "3")
    whole = uwf.json("thread", "context", thread)
    assert [step["role"] for step in whole["steps"]] == ["writer", "checker", "writer"]

    for last in (0, 1, 2, 9):
        context = uwf.json("thread", "context", thread, "--last", str(last))
        assert context == whole | {"steps": whole["steps"][3 - min(last, 3) :]}
    past = uwf.json("thread", "context", thread, "--at", "3", "--last", "1")
    assert past["steps"] == whole["steps"][1:2]
    prompt = uwf("thread", "context", thread, "--prompt", "--last", "2").out
    assert "[… the first 1 steps are left out;" in prompt
    assert "## Step 2: checker" in prompt
    assert "## Step 3, the newest: writer" in prompt
    prompt = uwf("thread", "context", thread, "--prompt", "--last", "0").out
    assert "The steps before yours are left out" in prompt
    assert uwf("thread", "context", thread, "--last", "-1").status == 2
