import pytest
from workflow_file import SOUND, problems_of, read


def test_settings_of_a_workflow_are_read() -> None:
    config = read(
        f"{SOUND}config:\n  maxExecutionTime: 600000  # 10 minutes\n  eventEmit: true\n"
        "  stateSnapshot: false\n  maxSteps: 9\n  maxTokens: 100\n  maxCost: 2.5\n"
    ).config

    assert config == {
        "maxSteps": 9,
        "maxExecutionTime": 600000,
        "maxTokens": 100,
        "maxCost": 2.5,
        "eventEmit": True,
        "stateSnapshot": False,
    }


@pytest.mark.parametrize("text", ["", "config:\n", "config: {}\n", "config: {maxSteps: }\n"])
def test_no_settings_are_none(text: str) -> None:
    assert read(SOUND + text).config is None


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("maxStep: 3", ".maxStep", "unknown key 'maxStep'; did you mean 'maxSteps'?"),
        ("maxSteps: 0", ".maxSteps", "must be a whole number, 1 or more"),
        ("maxTokens: many", ".maxTokens", "must be a whole number, 1 or more"),
        ("maxCost: -1", ".maxCost", "must be a number of US dollars above 0"),
        ("eventEmit: maybe", ".eventEmit", "must be true or false, not text"),
        ("stateSnapshot: 1", ".stateSnapshot", "must be true or false, not a number"),
    ],
)
def test_invalid_setting_is_reported_with_its_line(text: str, path: str, message: str) -> None:
    assert problems_of(f"{SOUND}config:\n  {text}\n") == [(21, f"config{path}", message)]


def test_settings_that_are_no_mapping_are_reported() -> None:
    ((line, path, message),) = problems_of(f"{SOUND}config: 10m\n")

    assert (line, path) == (20, "config")
    assert message.startswith("must be a mapping with maxSteps, maxExecutionTime")
