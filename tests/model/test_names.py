import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases

from uwf_git.model.names import (
    ALPHABET,
    NotANodeHash,
    NotAThreadId,
    check_path_below,
    encode_u64,
    fold,
    is_node_hash,
    is_thread_id,
    parse_node_prefix,
    parse_thread_prefix,
)
from uwf_git.model.thread import FORMAT
from uwf_git.model.workflow_name import check_name, check_workflow_name, fold_workflow_name

NAMES = Path(__file__).parent / "made_up" / "names.json"


def decode(text: str) -> int:
    number = 0
    for symbol in text:
        number = number * 32 + ALPHABET.index(symbol)
    return number


@given(st.integers(0, 2**64 - 1))
def test_a_number_can_be_read_back(number: int) -> None:
    text = encode_u64(number)
    assert decode(text) == number
    assert len(text) == 13
    assert text[0] <= "F"


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_texts_sort_as_their_numbers(one: int, other: int) -> None:
    assert (encode_u64(one) < encode_u64(other)) is (one < other)


@given(st.text(ALPHABET))
def test_canonical_value_stays(text: str) -> None:
    assert fold(text) == text
    assert fold(text.lower()) == text


node_hashes = st.integers(0, 2**64 - 1).map(encode_u64)


@given(node_hashes)
def test_every_hash_reads_as_itself_in_any_case(text: str) -> None:
    assert is_node_hash(text)
    assert parse_node_prefix(text) == parse_node_prefix(text.lower()) == text


@given(node_hashes, st.integers(1, 13))
def test_every_beginning_of_a_hash_is_a_prefix(text: str, length: int) -> None:
    assert parse_node_prefix(text[:length].lower()) == text[:length]


def test_names_and_what_is_wrong_with_them(golden: Callable[[str, str], None]) -> None:
    answers = {
        "check_path_below": check_path_below,
        "check_name": check_name,
        "check_workflow_name": check_workflow_name,
        "parse_node_prefix": lambda text: (is_node_hash(text), parse_node_prefix(text)),
        "parse_thread_prefix": lambda text: (is_thread_id(text), parse_thread_prefix(text)),
    }
    golden("model/names.txt", tell_cases(NAMES, answers))


def test_other_words_are_refused_in_one_short_line() -> None:
    for parse, kind in ((parse_node_prefix, NotANodeHash), (parse_thread_prefix, NotAThreadId)):
        with pytest.raises(kind) as caught:
            parse("x" * 10_000)
        assert caught.value.exit_status == 2
        assert len(caught.value.message) < 100


def test_the_format_is_the_second() -> None:
    """FORMAT.md has the history; once it is released, a new number comes with a way to read it."""
    assert FORMAT == 2


thread_ids = st.builds(
    str.__add__, st.sampled_from("01234567"), st.text(ALPHABET, min_size=25, max_size=25)
)


@given(thread_ids)
def test_every_id_reads_as_itself_in_any_case(text: str) -> None:
    assert is_thread_id(text)
    assert parse_thread_prefix(text) == parse_thread_prefix(text.lower()) == text


@given(thread_ids, st.integers(1, 26))
def test_every_beginning_of_an_id_is_a_prefix(text: str, length: int) -> None:
    assert parse_thread_prefix(text[:length].lower()) == text[:length]


@given(st.text(alphabet=ALPHABET + ALPHABET.lower() + "ILOilo", min_size=13, max_size=13))
def test_no_name_is_a_node_hash_as_people_type_them(name: str) -> None:
    could_be_typed = name[0] in "0123456789ABCDEFabcdefILOilo"
    assert (check_workflow_name(name) is not None) == could_be_typed


@given(st.text(max_size=30))
def test_name_without_a_problem_is_one_legal_file_name(name: str) -> None:
    if check_workflow_name(name) is None:
        assert "/" not in name
        assert name.isprintable()
        assert len(f"{name}.lock".encode()) <= 255


@pytest.mark.parametrize("name", ["solve-issue", "v1.2", "résumé", "工作流", "_", "a.b-c_d"])
def test_git_takes_the_name_for_a_ref(name: str) -> None:
    ran = subprocess.run(["git", "check-ref-format", f"refs/workflows/{name}"], check=False)
    assert ran.returncode == 0


def test_names_that_differ_in_case_alone_share_a_key() -> None:
    assert fold_workflow_name("Straße") == fold_workflow_name("STRASSE")
    assert fold_workflow_name("re\u0301sume\u0301") == fold_workflow_name("RÉSUMÉ")
    assert fold_workflow_name("develop") != fold_workflow_name("develop2")


@given(st.text())
def test_folding_twice_is_folding_once(name: str) -> None:
    assert fold_workflow_name(fold_workflow_name(name)) == fold_workflow_name(name)
