"""The data pipeline on Spark: matching DataFrames and streams, with the same answers as the engine.

``deliveries = tidegate.spark.match(events, subscriptions, event_time="time")``
"""

from tidegate.spark.batch import match
from tidegate.spark.patterns import match_patterns
from tidegate.spark.stream import BatchReport, deliver

__all__ = ["BatchReport", "deliver", "match", "match_patterns"]
