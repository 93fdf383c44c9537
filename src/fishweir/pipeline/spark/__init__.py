"""What runs on Spark: the session, the source, the job."""
