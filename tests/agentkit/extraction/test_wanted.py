from uwf_git.agentkit.extraction.wanted import WantedObject


def test_object_is_asked_for_in_words_too_unless_its_prompt_does() -> None:
    wanted = WantedObject({"type": "object"}, "What it is.")

    assert wanted.is_told_in_words
    assert wanted.guide == ""
