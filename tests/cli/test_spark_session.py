"""Sessions for commands: the JVM prints nothing to the terminal, and errors are short."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidegate import TidegateError
from tidegate.cli.spark_session import SHOWN_LINES, spark_session
from tidegate.cli.status import print_status


class Session:
    """A fake session, so that none has to be started and stopped."""

    def __init__(self) -> None:
        self.stopped = False

    def stop(self) -> None:
        os.write(2, b"Java: stopping\n")
        self.stopped = True


@pytest.fixture
def none_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: None))


def started(session: Session) -> Any:
    def make() -> Session:
        os.write(2, b"Java: starting\n")
        return session

    return make


@pytest.mark.usefixtures("none_there")
def test_a_session_is_stopped_and_java_is_not_heard(capfd: pytest.CaptureFixture[str]) -> None:
    made = Session()
    with spark_session(started(made)) as session:
        taken: Any = session
        assert taken is made
        assert not made.stopped
        print_status("matching")
        os.write(2, b"a warning of the work itself\n")
    assert made.stopped
    assert capfd.readouterr() == ("", "matching\na warning of the work itself\n")


@pytest.mark.usefixtures("none_there")
@pytest.mark.parametrize("error", [RuntimeError("no gateway"), OSError("no java")])
def test_if_spark_does_not_start_its_last_words_are_shown(
    error: Exception, capfd: pytest.CaptureFixture[str]
) -> None:
    def make() -> SparkSession:
        for number in range(SHOWN_LINES + 5):
            print(f"line {number}", file=sys.__stderr__, flush=True)
            os.write(2, f"word {number} \xff\n".encode("latin-1"))
        raise error

    with pytest.raises(TidegateError) as refused, spark_session(make):
        pytest.fail("there is no session")
    first, *words = str(refused.value).splitlines()
    assert first == f"Spark does not start: {error}"
    assert words[-1] == f"word {SHOWN_LINES + 4} \N{REPLACEMENT CHARACTER}"
    assert len(words) == SHOWN_LINES
    assert "word" not in capfd.readouterr().err


WORKER = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "worker.py", line 12, in match
tidegate.errors.EventError: attribute 'a': a list is not a value
\tat org.apache.spark.api.python.BasePythonRunner"""


@pytest.mark.usefixtures("none_there")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (WORKER, "attribute 'a': a list is not a value"),
        (
            "[PATH_NOT_FOUND] Path does not exist: x\n\tat org.apache",
            "[PATH_NOT_FOUND] Path does not exist: x",
        ),
        ("tidegate.errors.EventError\nmore", "tidegate.errors.EventError"),
        ("", "PySparkException"),
    ],
)
def test_an_error_of_spark_is_told_without_its_stack(text: str, reason: str) -> None:
    made = Session()
    with pytest.raises(TidegateError) as refused, spark_session(started(made)):
        raise PySparkException(text)
    assert str(refused.value) == reason
    assert made.stopped


@pytest.mark.usefixtures("none_there")
def test_other_errors_stay_what_they_are() -> None:
    made = Session()
    with pytest.raises(ZeroDivisionError), spark_session(started(made)):
        _ = 1 / 0
    assert made.stopped


@pytest.mark.xdist_group("spark")
def test_a_session_that_is_there_is_taken_and_stays(spark: SparkSession) -> None:
    def make() -> SparkSession:
        pytest.fail("there is one already")

    with spark_session(make) as session:
        assert session.sparkContext is spark.sparkContext  # queries have sessions of their own
    assert spark.range(3).count() == 3
