"""Plan and streams to results: the one Spark job, its source, its workers and its results table."""
