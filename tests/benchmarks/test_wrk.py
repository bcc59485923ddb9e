from __future__ import annotations

import pytest

from benchmarks import wrk
from benchmarks.harness import BenchmarkError

HEAD = "Running 5s test @ http://127.0.0.1:1234/v1/decide\n  1 threads and 32 connections\n"


def test_the_result_line_is_read_out_of_the_rest_of_the_output() -> None:
    found = wrk.parse(HEAD + "wrk-result\t2500\t5000000\t0\t0\t12500\t40000.0\n")
    assert found == wrk.Load(requests=2500, seconds=5.0, median_ms=12.5, p99_ms=40.0)
    assert found.rate == 500


@pytest.mark.parametrize("errors", ["1\t0", "0\t1"])
def test_a_run_with_errors_is_no_measurement(errors: str) -> None:
    with pytest.raises(BenchmarkError, match="of 2500 answers"):
        wrk.parse(HEAD + f"wrk-result\t2500\t5000000\t{errors}\t12500\t40000\n")


def test_a_run_that_is_to_be_refused_has_nothing_but_errors() -> None:
    line = HEAD + "wrk-result\t2500\t5000000\t{}\t0\t12500\t40000\n"
    assert wrk.parse(line.format(2500), refused=True).requests == 2500
    with pytest.raises(BenchmarkError, match="2499 were errors"):
        wrk.parse(line.format(2499), refused=True)


def test_output_without_a_result_is_refused() -> None:
    with pytest.raises(BenchmarkError, match="no result"):
        wrk.parse(HEAD)
