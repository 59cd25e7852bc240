import json
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from model.telling import tell_cases
from refusing import refuses

from uwf_git.plan.project_files import (
    MOST_BYTES,
    describe_gaps,
    find_plans,
    find_spelled,
    keep_out_of_git,
    list_plan_problems,
    read_plan,
    replace_whole,
    resolve_inside,
)
from uwf_git.plan.settings import (
    COMMANDS,
    DEFAULTS,
    MEANINGS,
    SELDOM,
    TRUSTED,
    load_plan_settings,
    read_plan_settings,
)
from uwf_git.store.git.config import GitConfig, set_config
from uwf_git.store.store import Store, create_store, open_store
from uwf_git.store.trust import describe_command, trust_agents

PATHS = Path(__file__).parent / "made_up" / "paths.json"


def plans(project: Path, **contents: str | bytes) -> Path:
    """Write plan files; `p000_a` is the name of `000-a.md`."""
    folder = project / "docs/plans"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        put(folder, f"{name[1:].replace('_', '-')}.md", content)
    return folder


def put(folder: Path, name: str, content: str | bytes = "Do it.") -> None:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def problems(project: Path) -> list[str]:
    return list_plan_problems(str(project), find_plans(str(project)))


def test_plans_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    put(plans(tmp_path, p010_b="x", p002_z="x", p1000_last="x", p000_setup="x"), "001-实现 全部.md")

    found = find_plans(str(tmp_path)).plans

    assert [(plan.number, plan.name) for plan in found] == [
        (0, "setup"),
        (1, "实现 全部"),
        (2, "z"),
        (10, "b"),
        (1000, "last"),
    ]
    assert found[1].file == "docs/plans/001-实现 全部.md"
    assert problems(tmp_path) == []


def test_name_is_composed_and_file_is_as_on_the_disk(tmp_path: Path) -> None:
    decomposed = unicodedata.normalize("NFD", "é한글")
    (tmp_path / decomposed).mkdir()
    put(tmp_path / decomposed, f"000-{decomposed}.md", b"\xef\xbb\xbfDo\r\nit.\r")

    (plan,) = find_plans(str(tmp_path), "é한글").plans

    assert (plan.name, plan.file) == ("é한글", f"{decomposed}/000-{decomposed}.md")
    assert read_plan(str(tmp_path), plan) == "Do\nit.\n"
    (tmp_path / plan.file).unlink()
    with pytest.raises(ValueError, match="cannot be read"):
        read_plan(str(tmp_path), plan)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "is empty"),
        (b"\xef\xbb\xbf \r\n\t", "is empty"),
        ("　\n", "is empty"),
        ("目标".encode("gbk"), "is not UTF-8 (byte 2)"),
        (b"ok \xff", "is not UTF-8 (byte 3)"),
        ("目标".encode("utf-16"), "is not UTF-8 (byte 0)"),
        (b"x" * (MOST_BYTES + 1), "has more than 1,048,576 bytes"),
    ],
)
def test_plan_that_cannot_be_read(tmp_path: Path, content: str | bytes, problem: str) -> None:
    plans(tmp_path, p000_good="x" * MOST_BYTES, p001_bad=content)

    assert problems(tmp_path) == [f"docs/plans/001-bad.md {problem}"]


def test_plan_that_is_no_file(tmp_path: Path) -> None:
    folder = plans(tmp_path)
    (folder / "000-folder.md").mkdir()
    os.mkfifo(folder / "001-pipe.md")
    (tmp_path / "elsewhere.md").write_text("x")
    (folder / "002-link.md").symlink_to(tmp_path / "elsewhere.md")

    assert problems(tmp_path) == [
        f"docs/plans/{name}.md is not a regular file"
        for name in ("000-folder", "001-pipe", "002-link")
    ]


def test_problems_are_shown_on_one_line(tmp_path: Path) -> None:
    folder = plans(tmp_path)
    put(folder, "000-a\n\x1b[2Jb.md", "")
    put(folder, os.fsdecode(b"001-\xff.md"))

    assert problems(tmp_path) == [
        "docs/plans/000-a \\x1b[2Jb.md is empty",
        "the name docs/plans/001-\\udcff.md is not UTF-8",
    ]


def test_gaps_are_no_problems(tmp_path: Path) -> None:
    plans(tmp_path, p001_a="x", p003_b="x", p007_c="x", p999999999999_d="x")
    found = find_plans(str(tmp_path))

    assert describe_gaps(found.plans) == "002, 004-006, 008-999999999998"
    assert problems(tmp_path) == []
    assert describe_gaps(found.plans[:1]) == ""


def test_folder_outside_is_refused(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "docs").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (project / "docs/plans").symlink_to(tmp_path / "elsewhere")

    for named in ("docs/plans", "..", "/", "a/../../b", str(tmp_path), ""):
        with refuses("plan-dir-outside"):
            find_plans(str(project), named)


def test_paths_and_names_of_plans(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "out").symlink_to(tmp_path)
    (project / "in").symlink_to("src")

    def tell_plans(name: str) -> object:
        folder = plans(tmp_path)
        put(folder, name)
        found = find_plans(str(tmp_path))
        told = [*found.plans, *found.others, *problems(tmp_path)]
        (folder / name).unlink()
        return told

    answers = {
        "resolve_inside": lambda path: resolve_inside(str(project), path),
        "find_plans": tell_plans,
    }
    golden("plan/paths.txt", tell_cases(PATHS, answers))


def test_absolute_path_below_a_linked_work_directory(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    linked = tmp_path / "linked"
    linked.symlink_to("real")

    for typed in (linked, tmp_path / "real"):
        assert resolve_inside(str(linked), str(typed / "a")) == "a"


def test_path_is_found_in_either_form_of_unicode(tmp_path: Path) -> None:
    composed, decomposed = (unicodedata.normalize(form, "é/ü.md") for form in ("NFC", "NFD"))
    mixed = os.path.join(decomposed.split("/")[0], composed.split("/")[1])
    (tmp_path / mixed).parent.mkdir()
    (tmp_path / mixed).touch()

    assert find_spelled(str(tmp_path), composed) == mixed
    assert find_spelled(str(tmp_path), decomposed) == mixed
    assert find_spelled(str(tmp_path), "é/ö") is None
    assert find_spelled(str(tmp_path), "a/é") is None


def test_folder_of_others_behind_our_name_is_not_ignored(tmp_path: Path) -> None:
    (tmp_path / "others").mkdir()
    (tmp_path / ".state").symlink_to("others")

    keep_out_of_git(str(tmp_path / ".state"))
    assert list((tmp_path / "others").iterdir()) == []


def test_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/x").touch()

    with pytest.raises(OSError, match="folder"):
        replace_whole(str(tmp_path / "folder"), b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder"]


SET = {
    "planDir": "plans",
    "memoryDir": "记忆",
    "stateFile": "state.json",
    "statusFile": "out/report.json",
    "pluginDir": "tools",
    "address": "::1",
    "port": "0",
    "maxRetries": "5",
    "planningTimeout": "30m",
    "executingTimeout": "90",
    "verifyingTimeout": "1.5h",
    "agent": "claude",
    "verifier": "codex --model x",
    "ai": "my-ai --fast",
    "stopGrace": "0",
    "hooks": "off",
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return create_store(str(tmp_path / "store.git"))


def config_of(**values: str) -> GitConfig:
    return GitConfig({f"uwf.plan.{name}".lower(): [value] for name, value in values.items()})


def test_every_setting_is_read(golden: Callable[[str, str], None]) -> None:
    settings = read_plan_settings(config_of(**SET))

    assert {f"uwf.plan.{name}" for name in SET} == set(MEANINGS)
    assert not set(settings) & set(DEFAULTS)
    told = settings._asdict(), settings.timeouts_ms, DEFAULTS, sorted(SELDOM), sorted(COMMANDS)
    golden("plan/settings.json", json.dumps((*told, TRUSTED), indent=1, ensure_ascii=False))


def test_wrong_value_is_refused_by_its_name() -> None:
    for name, value in [
        ("planDir", "../plans"),
        ("planDir", "docs/[v2]"),
        ("stateFile", "/etc/passwd"),
        ("statusFile", ".git/config"),
        ("pluginDir", "."),
        ("address", "a b"),
        ("port", "65536"),
        ("port", "-1"),
        ("maxRetries", "0"),
        ("maxRetries", "three"),
        ("planningTimeout", "0"),
        ("executingTimeout", "soon"),
        ("verifyingTimeout", "60w"),
        ("agent", " "),
        ("stopGrace", "-1"),
        ("hooks", "maybe"),
    ]:
        with refuses("bad-plan-setting", match=rf"uwf\.plan\.{name} is") as refused:
            read_plan_settings(config_of(**{name: value}))

        assert f"uwf config set uwf.plan.{name}" in (refused.value.hint or "")


@pytest.mark.parametrize("name", TRUSTED)
def test_what_a_store_sets_has_to_be_trusted(store: Store, tmp_path: Path, name: str) -> None:
    value = SET[name.rpartition(".")[2]]
    set_config(f"{store.path}/config", name, value)
    opened = open_store(store.path, environ={"HOME": str(tmp_path)})

    with refuses("setting-not-trusted", match=name):
        load_plan_settings(opened, str(tmp_path))
    trust_agents(opened, [describe_command(name, value)], str(tmp_path))

    assert value in load_plan_settings(opened, str(tmp_path))


def test_user_needs_no_trust(store: Store, tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text('[uwf "plan"]\n\tagent = claude\n\tport = 1\n')

    settings = load_plan_settings(
        open_store(store.path, environ={"HOME": str(tmp_path)}), str(tmp_path)
    )

    assert (settings.agent, settings.port) == ("claude", 1)
