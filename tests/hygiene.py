"""The house rules: functions from a checkout to complaints, each a line that begins with a file.

test_hygiene.py turns every rule into a test.
"""

import ast
import functools
import io
import os
import re
import subprocess
import sys
import sysconfig
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

Rule = Callable[[Path], list[str]]

PACKAGE, TESTS = "uwf_git", "tests"

MAX_MODULE_LINES = 700
MAX_FUNCTION_LINES = 70
# Lines of code, without docstrings, comments and blanks. A change may lower these; one that raises
# them says why in its commit.
CODE_LINES = {PACKAGE: 61_468, TESTS: 76_042}
# How far a number may be above what is there.
_SLACK = 100
MAX_SLEEP_S = 0.05

BANNED = {"util", "helper", "manager", "handler", "service", "processor"}
BANNED |= {"common", "misc", "base", "core", "data", "info"}

# Who prints: the command line, and what agent authors build on.
SHELL = (f"{PACKAGE}/cli/", f"{PACKAGE}/agentkit/")
# Who reads the environment: they, and what other programs have for a part.
OUTSIDE = (
    *SHELL,
    f"{PACKAGE}/library/",
    f"{PACKAGE}/plan/stop_hook.py",
    # What another machine, or another process of this one, is given to run begins there.
    f"{PACKAGE}/commands/fleet/executors.py",
    f"{PACKAGE}/commands/fleet/shared_drive.py",
)

# A package that many modules of one directory may import.
WIDE_DOORS = {
    "click": (f"{PACKAGE}/cli/",),
    "dulwich": (f"{PACKAGE}/store/",),
    "jsonata": (f"{PACKAGE}/engine/expression.py", f"{PACKAGE}/engine/jsonata_functions.py"),
    "markdown_it": (f"{PACKAGE}/web/entries.py", f"{PACKAGE}/cli/output/markdown_screen.py"),
    "rich": (f"{PACKAGE}/cli/output/markdown_screen.py",),
    "subprocess": (
        f"{PACKAGE}/agents/",
        f"{PACKAGE}/agentkit/adapters/",
        f"{PACKAGE}/store/git/program.py",
    ),
}
# A package that one module may import, wherever that is.
NARROW_DOORS = (
    "cbor2",
    "distributed",
    "jsonschema",
    "starlette",
    "ulid",
    "urllib3",
    "uvicorn",
    "wcwidth",
    "xxhash",
    "yaml",
)
# A package that is only there because another one is made of it.
PARTS_OF = {"referencing": "jsonschema", "jsonschema_specifications": "jsonschema"}

# Places that only one machine has; written so that this line does not match itself.
MACHINE_PATH = re.compile(r"(?<![\w.~#/})\]-])/(?:[w]ork/|[r]oot/|[t]mp/v\b)")

RUN_COMMAND = (
    "python3 -m venv .venv && .venv/bin/pip install -q -e . && "
    '.venv/bin/uwf run workflows/check-repo.yaml -p "is this checkout fit to release?"'
)
TEST_COMMAND = ".venv/bin/pip install -q -e '.[test]' && .venv/bin/pytest"

# The pages that lead to files, and a path in them: `room/file.py`, `room/`.
DOCUMENTS = ("ARCHITECTURE.md", "DECISIONS.md")
_DOCUMENTED = re.compile(r"`((?:[a-z_]+/)+(?:[a-z_]+\.(?:py|md))?|tests/[a-z_./]+)`")
# A module, as the package speaks of it: `file.py`, `room/file.py`; src/ begins an example.
_MODULE = re.compile(r"(?<![\w./*-])(?!src/)(?:\w+/)*[a-z]\w*\.py\b")

_SUPPRESSION = re.compile(
    r"#\s*(?:(?:ruff:\s*)?noqa(?P<noqa>:\s*[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*)?"
    r"|type:\s*ignore(?P<ignore>\[[\w-]+(?:,\s*[\w-]+)*\])?"
    r"|pragma:\s*no\s*(?:cover|branch)(?P<pragma>))"
)
# Crockford's Base32, which has no I, L, O and U.
_TAG = re.compile(r"[0-9A-HJKMNP-TV-Z]{8}")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def ruff_finds_nothing(root: Path) -> list[str]:
    """Lint everything (`ruff check`)."""
    return _tool(root, sys.executable, "-m", "ruff", "check", "--output-format=concise")


def code_is_formatted(root: Path) -> list[str]:
    """Format everything (`ruff format`)."""
    return _tool(root, sys.executable, "-m", "ruff", "format", "--check")


def types_hold(root: Path) -> list[str]:
    """Check the types of package and tests (`mypy`, strict as pyproject.toml says)."""
    return _tool(root, sys.executable, "-m", "mypy", "--no-color-output")


def plans_need_no_posix(root: Path) -> list[str]:
    """Use nothing that Windows lacks where plan files, hooks and their server are (`mypy`)."""
    if not (root / PACKAGE / "plan").is_dir():
        return []
    windows = ("--platform=win32", "--follow-imports=silent", f"--cache-dir={os.devnull}")
    return _tool(
        root, sys.executable, "-m", "mypy", "--no-color-output", *windows, f"{PACKAGE}/plan"
    )


def imports_point_one_way(root: Path) -> list[str]:
    """Check the layers (`lint-imports`)."""
    return _tool(root, str(Path(sysconfig.get_path("scripts"), "lint-imports")), "--no-logo")


def _tool(root: Path, *command: str) -> list[str]:
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    told = f"{ran.stdout}\n{ran.stderr}".strip()
    return [] if ran.returncode == 0 else [told or f"{command} failed"]


def modules_are_short(root: Path) -> list[str]:
    """Keep every module to a length that can be read at one go."""
    return [
        f"{path}: {lines} lines, at most {MAX_MODULE_LINES}"
        for path, lines in _lengths(root).items()
        if lines > MAX_MODULE_LINES
    ]


def house_does_not_grow(root: Path) -> list[str]:
    """Keep the program and its tests from growing by the way, and the numbers at what is there."""
    found: list[str] = []
    for folder, most in CODE_LINES.items():
        lines = sum(count_code(text, path) for path, text in _texts(root, folder))
        if not most - _SLACK <= lines <= most:
            found.append(f"{folder}: {lines} lines of code, and CODE_LINES says {most}")
    return found


def count_code(text: str, path: str) -> int:
    """Count the lines that are no docstring, no comment and not blank."""
    told: set[int] = set()
    for node in ast.walk(_parsed(text, path)):
        body = getattr(node, "body", None)
        for each in body if isinstance(body, list) else []:
            value = each.value if isinstance(each, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                told.update(range(each.lineno, (each.end_lineno or each.lineno) + 1))
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and line[0] != "#" and at not in told for at, line in lines)


def functions_are_short(root: Path) -> list[str]:
    """Keep every function to one screen."""
    return [
        f"{path}:{node.lineno}: {node.name} has {lines} lines, at most {MAX_FUNCTION_LINES}"
        for path, tree in _trees(root, PACKAGE, TESTS)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > MAX_FUNCTION_LINES
    ]


def modules_have_headers(root: Path) -> list[str]:
    """Begin every module with a docstring that says what it does."""
    return [
        f"{path}:1: no header docstring"
        for path, tree in _trees(root, PACKAGE)
        if not ast.get_docstring(tree)
    ]


def public_names_have_docstrings(root: Path) -> list[str]:
    """Say what library and agentkit promise, which others import; not what is inside agentkit."""
    return [
        f"{path}:{node.lineno}: {node.name} has no docstring"
        for path, tree in _trees(root, "uwf_git/library", "uwf_git/agentkit")
        for node in _public(tree)
        if not ast.get_docstring(node) and not _continues_another(node) and path.count("/") == 2
    ]


def _public(
    parent: ast.Module | ast.ClassDef,
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in parent.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name.startswith("_"):
                continue
            yield node
            if isinstance(node, ast.ClassDef):
                yield from _public(node)


def _continues_another(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Check whether the docstring is elsewhere: at the getter, or below the overloads."""
    names = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    return bool(names & {"overload", "override", "setter", "deleter"})


def names_say_something(root: Path) -> list[str]:
    """Keep words that fit everything out of the names of modules and classes."""
    return [
        f"{path}:{line}: {name!r} says nothing: {word}"
        for path, tree in _trees(root, PACKAGE, TESTS)
        for line, name in _names(path, tree)
        for word in map(str.lower, _WORD.findall(name))
        if word in BANNED or word.removesuffix("s") in BANNED
    ]


def _names(path: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    yield 1, path.removesuffix(".py")
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.lineno, node.name


def each_dependency_has_one_door(root: Path) -> list[str]:
    """Let one module (or one layer) know each package that we did not write."""
    complaints = []
    importers: dict[str, set[str]] = defaultdict(set)
    for path, line, name in _foreign_imports(root):
        package = PARTS_OF.get(name, name)
        importers[package].add(path)
        if package in WIDE_DOORS:
            if not path.startswith(WIDE_DOORS[package]):
                doors = " or ".join(WIDE_DOORS[package])
                complaints.append(f"{path}:{line}: imports {name}, whose door is {doors}")
        elif package not in NARROW_DOORS:
            complaints.append(f"{path}:{line}: imports {name}, which has no door")
    for package in NARROW_DOORS:
        if len(importers[package]) > 1:
            doors = ", ".join(sorted(importers[package]))
            complaints.append(f"{PACKAGE}: {package} has several doors: {doors}")
    return complaints + [
        f"{PACKAGE}: nothing imports {package}"
        for package in sorted({*NARROW_DOORS, "click", "dulwich"})
        if not importers[package]
    ]


def _foreign_imports(root: Path) -> Iterator[tuple[str, int, str]]:
    own = (sys.stdlib_module_names | {PACKAGE}) - WIDE_DOORS.keys()
    for path, tree in _trees(root, PACKAGE):
        for line, name in _imports(tree):
            if (package := name.partition(".")[0]) not in own:
                yield path, line, package


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.lineno, node.module or ""


def only_the_shell_prints(root: Path) -> list[str]:
    """Keep the library silent: what it has to say, it returns or raises."""
    return [
        f"{path}:{node.lineno}: print"
        for path, tree in _trees(root, PACKAGE)
        if not path.startswith(SHELL)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
    ]


def only_the_shell_reads_the_environment(root: Path) -> list[str]:
    """Pass settings down as arguments, so that one place decides them."""
    readers = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
    return [
        f"{path}:{line}: os.{name}"
        for path, tree in _trees(root, PACKAGE)
        if not path.startswith(OUTSIDE)
        for line, name in _taken_from(tree, "os")
        if name in readers
    ]


def _taken_from(tree: ast.Module, module: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == module:
            yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom) and node.module == module:
            yield from ((node.lineno, alias.name) for alias in node.names)


def tags_lead_to_their_call(root: Path) -> list[str]:
    """Let each call of the debug log have a tag, and words, that no other call has."""
    complaints = []
    seen: dict[str, str] = {}
    for path, tree in _trees(root, PACKAGE):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) != "debug":
                continue
            place = f"{path}:{node.lineno}"
            tag, content = ([*map(_literal, node.args), "", ""])[:2]
            if not _TAG.fullmatch(tag):
                complaints.append(f"{place}: {tag!r} is no tag: 8 of Crockford's Base32, as text")
            if not content:
                complaints.append(f"{place}: what happens is not said in words of its own")
            complaints += [
                f"{place}: {word!r} is said at {seen[word]} as well"
                for word in (tag, content)
                if word in seen
            ]
            seen |= dict.fromkeys([word for word in (tag, content) if word], place)
    return complaints


def _literal(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def error_codes_are_unique(root: Path) -> list[str]:
    """Let each error code belong to one class, so that programs can tell errors apart."""
    seen: dict[str, str] = {}
    complaints = []
    for path, tree in _trees(root, PACKAGE):
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef) or not (code := _code_of(node)):
                continue
            if code in seen:
                complaints.append(f"{path}:{node.lineno}: {code!r} is the code of {seen[code]} too")
            seen.setdefault(code, f"{node.name} ({path})")
    return complaints


def _code_of(node: ast.ClassDef) -> str:
    """Return the text that a class gives its attribute `code`, or an empty one."""
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="code")], value=value):
                return _literal(value)
            case ast.AnnAssign(target=ast.Name(id="code"), value=ast.expr() as value):
                return _literal(value)
    return ""


def suppressions_give_code_and_reason(root: Path) -> list[str]:
    """Say what is suppressed and why, behind it or in a comment of its own just above."""
    complaints = []
    for path, text in _texts(root, PACKAGE, TESTS):
        if _SUPPRESSION.search(text) is None:
            # To read the tokens of each file takes seconds.
            continue
        comments = _comments(text)
        alone = {line for line, (comment, whole) in comments.items() if comment == whole}
        for line, (comment, _) in comments.items():
            found = list(_SUPPRESSION.finditer(comment))
            reason = re.search(r"\w\w", _SUPPRESSION.sub("", comment))
            if any(set(each.groups()) == {None} for each in found):
                complaints.append(f"{path}:{line}: no code: {comment}")
            elif found and not reason and line - 1 not in alone:
                complaints.append(f"{path}:{line}: no reason: {comment}")
    return complaints


def _comments(text: str) -> dict[int, tuple[str, str]]:
    """Map line numbers to the comment there and the whole line, stripped."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {
        token.start[0]: (token.string.strip(), token.line.strip())
        for token in tokens
        if token.type == tokenize.COMMENT
    }


def rooms_have_tests(root: Path) -> list[str]:
    """Test uwf_git/x/y.py in the folder tests/x, so that nobody has to search.

    A verb of the command line has a test of its name, or a page that types it.
    """
    complaints = []
    pages = (root / TESTS / "golden/screens/scenes").glob("*.txt")
    typed = set(re.findall(r"^\$ uwf (?:thread )?(\w+)", "".join(map(_read, pages)), re.MULTILINE))
    for path, text in _texts(root, PACKAGE):
        module = Path(path).relative_to(PACKAGE)
        room = Path(TESTS) / module.parent
        if module.name.startswith("__"):
            continue
        verbs = re.findall(r"^def (\w+)_command\(", text, re.MULTILINE)
        tests = (root / room).glob("**/test_*.py")
        if typed.isdisjoint(verbs) and not any(
            test.stem[5:] in verbs or _is_test_of(module, test) for test in tests
        ):
            complaints.append(f"{path}: no test in {room.as_posix()} imports it")
    return complaints


def _is_test_of(module: Path, test: Path) -> bool:
    if test.name == f"test_{module.name}":
        return True
    package, _, name = ".".join((PACKAGE, *module.with_suffix("").parts)).rpartition(".")
    imported = re.compile(rf"\b{re.escape(package)}(?:\.| import \(?\s*(?:\w+,\s+)*){name}\b")
    return imported.search(_read(test)) is not None


def no_path_of_a_machine(root: Path) -> list[str]:
    """Speak of the project alone: no file knows where some checkout or home happens to be."""
    here = re.compile(f"{MACHINE_PATH.pattern}|{re.escape(str(root))}\\b")
    return [
        f"{path}:{number}: {found[0]}"
        for path in _listed(root)
        for number, line in enumerate(_read(root / path).splitlines(), 1)
        if (found := here.search(line))
    ]


def tests_do_not_sleep(root: Path) -> list[str]:
    """Wait for things, not for time."""
    return [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for path, tree in _trees(root, TESTS)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"time.sleep", "asyncio.sleep", "sleep"}
        and not _is_moment(node.args)
    ]


def _is_moment(arguments: list[ast.expr]) -> bool:
    match arguments:
        case [ast.Constant(value=int() | float() as seconds)]:
            return seconds <= MAX_SLEEP_S
    return False


def readme_holds_the_commands(root: Path) -> list[str]:
    """Promise two commands word for word, and run the second one in CI."""
    places = [("README.md", RUN_COMMAND), ("README.md", TEST_COMMAND), (".ci/run", TEST_COMMAND)]
    return [
        f"{name}: does not hold: {command}"
        for name, command in places
        if not (root / name).exists() or command not in _read(root / name)
    ]


def documents_name_files_that_exist(root: Path) -> list[str]:
    """Name only files and folders that exist, below the package, the tests or the checkout."""
    return [
        f"{name}: there is no {path}"
        for name in DOCUMENTS
        if (root / name).exists()
        for path in sorted(set(_DOCUMENTED.findall(_read(root / name))))
        if not any((root / base / path).exists() for base in (PACKAGE, TESTS, "."))
    ]


def modules_name_modules_that_exist(root: Path) -> list[str]:
    """Name only modules that exist, below the package or the tests."""
    there = [f"/{path}" for path, _ in _texts(root, PACKAGE, TESTS)]
    return [
        f"{path}: there is no {name}"
        for path, text in _texts(root, PACKAGE)
        for name in sorted(set(_MODULE.findall(text)))
        if not any(each.endswith(f"/{name}") for each in there)
    ]


TYPE_RULES: tuple[Rule, ...] = (types_hold, plans_need_no_posix)

SIZE_RULES: tuple[Rule, ...] = (house_does_not_grow,)

TOOLS: tuple[Rule, ...] = (ruff_finds_nothing, code_is_formatted, imports_point_one_way)

RULES: tuple[Rule, ...] = (
    *TOOLS,
    modules_are_short,
    functions_are_short,
    modules_have_headers,
    public_names_have_docstrings,
    names_say_something,
    each_dependency_has_one_door,
    only_the_shell_prints,
    only_the_shell_reads_the_environment,
    tags_lead_to_their_call,
    error_codes_are_unique,
    suppressions_give_code_and_reason,
    rooms_have_tests,
    no_path_of_a_machine,
    tests_do_not_sleep,
    readme_holds_the_commands,
    documents_name_files_that_exist,
    modules_name_modules_that_exist,
)


def _texts(root: Path, *directories: str) -> Iterator[tuple[str, str]]:
    for directory in directories:
        for path in sorted((root / directory).rglob("*.py")):
            yield path.relative_to(root).as_posix(), _read(path)


def _trees(root: Path, *directories: str) -> Iterator[tuple[str, ast.Module]]:
    for path, text in _texts(root, *directories):
        yield path, _parsed(text, path)


def forget_trees() -> None:
    """Forget the syntax trees of all files; they take 300 MB."""
    _parsed.cache_clear()


@functools.cache
def _parsed(text: str, path: str) -> ast.Module:
    return ast.parse(text, path)


def _lengths(root: Path) -> dict[str, int]:
    return {path: len(text.splitlines()) for path, text in _texts(root, PACKAGE)}


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _listed(root: Path) -> list[str]:
    """List what is, or could be, committed; without git, all files that are not hidden."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        found = [name for name in ran.stdout.split("\0") if name]
    else:
        found = [path.relative_to(root).as_posix() for path in sorted(root.rglob("*"))]
        found = [name for name in found if "/." not in f"/{name}"]
    return [name for name in found if (root / name).is_file()]
