"""The rules that every test file keeps."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
FILES = sorted(TESTS.rglob("test_*.py"))


@cache
def tree(path: Path) -> ast.Module:
    """What a file of tests says."""
    return ast.parse(path.read_text())


def test_every_test_states_its_behaviour_in_a_sentence() -> None:
    """Every test function has a docstring of at least three words that ends with a full stop."""
    silent = []
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                sentence = ast.get_docstring(node) or ""
                if len(sentence.split()) < 3 or not sentence.endswith("."):
                    silent.append(f"{path.relative_to(TESTS)}:{node.lineno} {node.name}")
    assert silent == []


def test_no_package_among_the_tests() -> None:
    """No __init__.py lies under tests/: one in tests/broker would make `import broker` return the tests."""
    assert list(TESTS.rglob("__init__.py")) == []


def test_unit_tests_lie_where_the_code_lies() -> None:
    """Each directory under tests/broker and tests/subscribers exists in the code too."""
    root = TESTS.parent
    folders = {path.parent.relative_to(TESTS) for path in FILES}
    mirrored = {folder for folder in folders if folder.parts[0] in ("broker", "subscribers")}
    lost = {
        str(f) for f in mirrored if not (root / f).is_dir() and not (root / f).with_suffix(".py").exists()
    }
    assert lost == set()


def test_nothing_sleeps_to_wait() -> None:
    """No test calls time.sleep or asyncio.sleep with a positive time: it waits for the condition instead."""
    sleepers = []
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(tree(path)):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr == "sleep" and ast.unparse(node.func) in ("time.sleep", "asyncio.sleep"):
                zero = node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
                if not zero:
                    sleepers.append(f"{path.relative_to(TESTS)}:{node.lineno}")
    assert sleepers == []
