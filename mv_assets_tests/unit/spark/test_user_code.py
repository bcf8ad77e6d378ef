"""Functions of a user's package, on workers that do not have it; and what is said when they fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from mv_assets.spark.failures import in_short
from mv_assets_tests.unit.spark import python_process

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("kind", ["local", pytest.param("connect", marks=pytest.mark.slow)])
def test_workers_are_sent_the_code_and_what_it_raises_is_a_sentence_with_its_line(
    kind: str, tmp_path: Path
) -> None:
    found = python_process.run(kind, tmp_path)
    views, names = tmp_path / "shop" / "views.py", tmp_path / "shop" / "names.py"
    # Without it they would not find the package.
    assert "ModuleNotFoundError: No module named 'shop'" in found["by reference"]
    assert (found["registered"], found["registered after"]) == (["shop"], [])
    assert found["of_module"] == [["<0>", 0], ["<1>", 2], ["<2>", 4]]
    assert found["of_function"] == [["<0>"], ["<1>"], ["<2>"]]
    # While the plan is made.
    divides = f"shop.views:divides ({views}:{line(views, 'return 1 // 0')} in quotient)"
    assert found["divides"] == f"JobFailed: {divides}: ZeroDivisionError: integer division or modulo by zero"
    nothing = f"shop.views:unresolved ({views}:{line(views, 'nothing')} in unresolved): AnalysisException: ["
    assert found["unresolved"].startswith(f"JobFailed: {nothing}UNRESOLVED_COLUMN")
    refused = f"shop.views:refused ({views}:{line(views, 'raise Conn')} in refused)"
    assert found["refused"] == f"JobFailed: {refused}: ConnectionRefusedError: Connection refused"
    leaves = f"shop.views:leaves ({views}:{line(views, 'raise System')} in leaves)"
    assert found["leaves"] == f"JobFailed: {leaves}: SystemExit: I am gone"
    # While it runs.
    raised = f"a Python function ({names}:{line(names, 'raise Value')} in bracket): ValueError: three"
    assert found["raises"] == found["raises in a write"] == f"JobFailed: {raised}"
    lost = f"a Python function ({names}:{line(names, 'raise Conn')} in bracket): ConnectionRefusedError: "
    assert found["no connection"] == f"JobFailed: {lost}Connection refused"


def line(file: Path, text: str) -> int:
    """Where a text first is in a file."""
    return next(at for at, each in enumerate(file.read_text().splitlines(), 1) if text in each)


def test_of_a_trace_the_last_line_that_is_no_librarys_is_told() -> None:
    """As a worker's, with a cause, and the JVM's own below it."""
    said = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/lake/shop/names.py", line 2, in first
    1 / 0
ZeroDivisionError: division by zero

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/spark/python/lib/pyspark.zip/pyspark/worker.py", line 1000, in main
    process()
  File "/lake/shop/names.py", line 7, in second
    json.loads(x)
  File "/usr/lib/python3.11/json/__init__.py", line 346, in loads
    return _default_decoder.decode(s)
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:500)
"""
    assert in_short(RuntimeError(said)) == (
        "a Python function (/lake/shop/names.py:7 in second): json.decoder.JSONDecodeError: Expecting value: "
        "line 1 column 1 (char 0)"
    )


def test_a_trace_in_a_value_is_no_trace() -> None:
    assert in_short(ValueError("Traceback (most recent call last): was in the data")).startswith("Traceback")
