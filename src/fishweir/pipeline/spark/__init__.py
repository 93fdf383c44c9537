"""The parts that run on Spark: the session, the source, the job."""
