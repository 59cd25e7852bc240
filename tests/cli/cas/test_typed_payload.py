from collections.abc import Callable

import pytest
from cli.ran import Ran

Cas = Callable[..., Ran]


@pytest.mark.parametrize("verb", ["put", "hash"])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "takes TYPE and FILE, not no words"),
        (["Text"], "takes TYPE and FILE, not 1 word"),
        (["Text", "a", "b"], "takes TYPE and FILE, not 3 words"),
        (["--self"], "takes FILE alone with --self, not no words"),
        (["--self", "Text", "a"], "takes FILE alone with --self, not 2 words"),
    ],
)
def test_wrong_number_of_words_is_refused_with_what_is_wanted(
    verb: str, words: list[str], told: str, cas: Cas
) -> None:
    ran = cas(verb, *words)

    assert (ran.status, ran.out) == (2, "")
    error, hint = ran.err.splitlines()
    assert error == f"error: json-cas {verb} {told}"
    assert hint.startswith("hint: FILE may be `-`, standard input;")


@pytest.mark.parametrize("verb", ["put", "hash"])
def test_empty_word_is_refused(verb: str, cas: Cas) -> None:
    assert cas(verb, "Text", "").status == 2
