"""Spark and Flink on this machine, as clusters of several processes on loopback, for tests and benchmarks."""
