"""The data pipeline on Spark: matching DataFrames and streams, with the same answers as the engine.

``deliveries = tidegate.spark.match(events, subscriptions, event_time="time")``
"""

from tidegate.spark.backtesting.backtest import backtest
from tidegate.spark.backtesting.result import Backtest
from tidegate.spark.match_tables import match
from tidegate.spark.patterns.match_patterns import match_patterns
from tidegate.spark.session import choose_worker_python
from tidegate.spark.streaming.deliver import deliver
from tidegate.spark.streaming.micro_batch import BatchReport

choose_worker_python()  # before a session is made, as imports are

__all__ = ["Backtest", "BatchReport", "backtest", "deliver", "match", "match_patterns"]
