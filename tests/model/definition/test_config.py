from workflow_file import SOUND, read


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
