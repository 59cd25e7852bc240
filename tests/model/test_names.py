import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_lookalikes_are_forgiven() -> None:
    assert parse_node_prefix("oil0123456789") == "0110123456789"
    assert parse_node_prefix("il") == "11"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GFWKR3TN5V1QA",
        "8FWKR3TN5V1QU",
        "8FWKR3TN5V1QA\n",
        "8FWKR3TN5V1Q\u0131",
        "8FWKR3TN5V1Q\u017f",
        "x" * 10_000,
    ],
)
def test_other_words_are_refused_in_one_short_line(text: str) -> None:
    assert not is_node_hash(text)
    with pytest.raises(NotANodeHash) as caught:
        parse_node_prefix(text)
    assert caught.value.exit_status == 2
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 100


@pytest.mark.parametrize(
    "path", ["a.json", ".state/status.json", "docs/计划/000.md", "a b", ".github/x"]
)
def test_path_of_the_work_is_fine(path: str) -> None:
    assert check_path_below(path) is None


def test_other_paths_are_refused() -> None:
    for path, problem in [
        ("", "names no file"),
        (" ", "names no file"),
        ("a\nb", "has a line break, or another control character, in its name"),
        (".", "names no file"),
        ("docs/", "names no file"),
        ("/etc/passwd", "has to be relative to the work directory"),
        ("~/x", "has to be relative to the work directory"),
        ("..", "leads out of the work directory"),
        ("a/../../b", "leads out of the work directory"),
        (".git/config", "is git's own"),
        ("sub/.GIT/hooks/x", "is git's own"),
    ]:
        assert check_path_below(path) == problem


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


@pytest.mark.parametrize(
    "text",
    [
        "",
        "81J7K9M2XNPQR5VWBCDF8G3H4T",
        "01J7K9M2XNPQR5VWBCDF8G3H4T\n",
        "01J7K9M2XNPQR5VWBCDF8G3H4\u017f",
        "../../../../../etc/passwd.",
    ],
)
def test_other_words_are_refused(text: str) -> None:
    assert not is_thread_id(text)
    with pytest.raises(NotAThreadId) as caught:
        parse_thread_prefix(text)
    assert caught.value.exit_status == 2
    assert caught.value.facts["given"] == text


@pytest.mark.parametrize(
    "name",
    [
        *("solve-issue", "develop", "a", "v1.2", "snake_case", "9lives", "résumé", "工作流"),
        *("नमस्ते", "_"),
    ],
)
def test_ordinary_name_has_no_problem(name: str) -> None:
    assert check_workflow_name(name) is None


def test_name_that_could_be_mistaken_has_a_problem() -> None:
    for name, problem in [
        ("", "is empty"),
        ("a b", "' ' (U+0020) is not allowed in it"),
        ("a/b", "'/' (U+002F) is not allowed in it"),
        ("a\nb", "(U+000A) is not allowed in it"),
        ("a\0b", "(U+0000) is not allowed in it"),
        ("@", "'@' (U+0040) is not allowed first"),
        ("a@{0}", "'@' (U+0040) is not allowed in it"),
        ("$START", "'$' (U+0024) is not allowed first"),
        ("dev<x>", "'<' (U+003C) is not allowed in it"),
        *((f"a{mark}b", f"{mark!r} (U+00") for mark in "~^:?*[\\,;!#%&'+=|`\"(){}"),
        ("a\u200db", "(U+200D) is not allowed in it"),
        ("a\u202eb", "(U+202E) is not allowed in it"),
        ("🍊", "(U+1F34A) is not allowed first"),
        ("\u0301a", "(U+0301) is not allowed first"),
        ("\ud800", "(U+D800) is not allowed first"),
        ("re\u0301sume\u0301", "it is not in Unicode NFC; write 'résumé'"),
        ("-rf", "starts with a dash"),
        (".hidden", "starts or ends with a dot"),
        ("a.", "starts or ends with a dot"),
        ("..", "starts or ends with a dot"),
        ("a..b", "two dots in a row"),
        ("main.lock", "ends in .lock"),
        ("main.LOCK", "ends in .lock"),
        ("a" * 101, "longer than 100 characters"),
        ("工" * 81, "longer than 100 characters or 240 bytes"),
    ]:
        assert problem in (check_name(name) or "")
        assert problem in (check_workflow_name(name) or "")


def test_name_that_reads_as_a_thread_id_is_no_workflow() -> None:
    assert "thread id" in (check_workflow_name("01j7k9m2xnpqr5vwbcdf8g3h4t") or "")


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
