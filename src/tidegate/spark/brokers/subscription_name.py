"""The name of the subscription that a stream of Spark has at its broker."""

SUBSCRIPTION = "spark"
