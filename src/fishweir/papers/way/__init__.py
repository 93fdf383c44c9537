"""The experiment on the way through the job: from publish to results on disk and to a callback, against peers."""
