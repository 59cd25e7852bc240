import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.names import ALPHABET
from uwf_git.model.workflow_name import check_name, check_workflow_name, fold_workflow_name


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
    ref = f"refs/workflows/{name}"
    ran = subprocess.run(["git", "check-ref-format", ref], check=False)
    assert ran.returncode == 0


def test_names_that_differ_in_case_alone_share_a_key() -> None:
    assert fold_workflow_name("Straße") == fold_workflow_name("STRASSE")
    assert fold_workflow_name("re\u0301sume\u0301") == fold_workflow_name("RÉSUMÉ")
    assert fold_workflow_name("develop") != fold_workflow_name("develop2")


@given(st.text())
def test_folding_twice_is_folding_once(name: str) -> None:
    assert fold_workflow_name(fold_workflow_name(name)) == fold_workflow_name(name)
