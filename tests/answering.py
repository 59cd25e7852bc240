"""A person who answers a form, for the tests of forms and of `thread answer`."""


class Answers:
    """A person with prepared answers."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.shown = ""

    def say(self, text: str) -> None:
        self.shown += text

    def read_line(self, prompt: str = "> ") -> str | None:
        self.shown += prompt
        return self.answers.pop(0)
