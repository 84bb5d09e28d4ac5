"""The house rules that no linter checks."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MODULE_LINES_MAX = 300
FUNCTION_LINES_MAX = 70

TOP_LEVEL = {
    ".ci",
    ".gitattributes",
    ".gitignore",
    "CHANGELOG.md",
    "Makefile",
    "README.md",
    "demo",
    "harness",
    "ledger",
    "migrations",
    "pyproject.toml",
    "requirements.lock",
    "tests",
    "viewer",
}

HARNESS_MAY_IMPORT = {"harness", "pydantic"} | sys.stdlib_module_names
HARNESS_ADAPTERS_MAY_IMPORT = HARNESS_MAY_IMPORT | {"openai"}
LEDGER_MAY_IMPORT_OF_HARNESS = {
    "budget",
    "clock",
    "content",
    "errors",
    "events",
    "ids",
    "journal",
    "promise",
    "recording",
    "state",
}

# In pieces, or this file would name what none may name.
REGISTRY_HOSTS = [
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "npmjs" + ".org",
    "npmjs" + ".com",
    "yarnpkg" + ".com",
    "debian" + ".org",
]


def tracked_files() -> list[Path]:
    """The files that git knows or would add, whoever owns the folder."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]


def sources(*packages: str) -> list[Path]:
    return [path for path in tracked_files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in packages]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports_of(path: Path) -> Iterator[str]:
    """Every dotted name that the module imports, at any depth; of `from a import b` it is `a.b`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


PACKAGES = ["harness", "ledger", "viewer", "demo"]


def test_a_module_fits_on_a_few_screens():
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in sources(*PACKAGES, "migrations")}
    assert {name: lines for name, lines in lengths.items() if lines > MODULE_LINES_MAX} == {}


def test_a_function_fits_on_one_screen():
    too_long = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path in sources(*PACKAGES)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert too_long == []


def test_every_public_module_says_what_it_is_for():
    silent = [
        name_of(path)
        for path in sources(*PACKAGES, "migrations")
        if not path.stem.startswith("_") or path.stem == "__init__"
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


def test_no_run_travels_in_ambient_state():  # SPEC H1
    ambient = [
        f"{name_of(path)} {name}"
        for path in sources("harness")
        for name in imports_of(path)
        if name.startswith("contextvars") or name == "threading.local"
    ]
    attributes = [
        f"{name_of(path)}:{node.lineno}"
        for path in sources("harness")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("threading.local", "contextvars.ContextVar")
    ]
    assert ambient + attributes == []


def test_the_harness_needs_pydantic_only_and_its_adapters_their_client():
    foreign = [
        f"{name_of(path)} {name}"
        for path in sources("harness")
        for name in imports_of(path)
        if name.split(".")[0]
        not in (HARNESS_ADAPTERS_MAY_IMPORT if "adapters" in path.relative_to(ROOT).parts else HARNESS_MAY_IMPORT)
    ]
    assert foreign == []


def test_the_ledger_knows_of_the_harness_only_what_it_records():
    foreign = [
        f"{name_of(path)} {name}"
        for path in sources("ledger")
        for name in imports_of(path)
        if name.split(".")[0] == "harness" and not LEDGER_MAY_IMPORT_OF_HARNESS.intersection(name.split(".")[1:2])
    ]
    assert foreign == []


@pytest.mark.parametrize("host", REGISTRY_HOSTS)
def test_no_file_names_a_package_registry(host):
    naming = [name_of(path) for path in tracked_files() if host.encode() in path.read_bytes()]
    assert naming == []


def test_the_top_level_holds_only_what_the_house_needs():
    assert {path.relative_to(ROOT).parts[0] for path in tracked_files()} - TOP_LEVEL == set()
