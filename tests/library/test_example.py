"""The example runs unchanged, in a process."""

import inspect
from pathlib import Path

from programs import run_python

import uwf_git

SAID = """\
1 writer {"line": "one two three four five"}
2 editor {"short": false}
3 writer {"line": "one two three four"}
4 editor {"short": true}
4 None completed
end 4 completed {'asked_by': 'example'}
workflow:start None
workflow:progress None
workflow:progress writer
workflow:progress editor
workflow:progress writer
workflow:progress editor
workflow:complete editor
thread-not-active
"""


def test_example_says_what_it_promises(tmp_path: Path) -> None:
    script = Path(__file__).with_name("example.py")

    assert run_python(script, "store.git", cwd=tmp_path) == SAID


def test_every_name_of_the_package_is_there_and_documented() -> None:
    for name in uwf_git.__all__:
        assert inspect.getdoc(getattr(uwf_git, name)), name
        assert name in str(uwf_git.__doc__), name


def test_every_promised_name_has_one_home() -> None:
    homes = [name for names in uwf_git._HOMES.values() for name in names]  # noqa: SLF001 (the table)

    assert sorted(homes) == sorted(uwf_git.__all__) == uwf_git.__all__


def test_importing_the_package_imports_nothing_else() -> None:
    script = "import sys; before = set(sys.modules); import uwf_git; print(set(sys.modules)-before)"
    # -S: no .pth of this environment, whose finders import much by themselves.
    told = run_python("-S", "-c", script, cwd=Path(uwf_git.__file__).parent.parent)

    assert told == "{'uwf_git'}\n"


def test_starting_a_task_by_name_imports_no_yaml() -> None:
    heavy = "{'yaml', 'jsonschema', 'jsonata', 'click', 'ulid'}"
    script = f"import sys; from uwf_git import TaskRuntime; print({heavy} & set(sys.modules))"

    assert run_python("-c", script) == "set()\n"
