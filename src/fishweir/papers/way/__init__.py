"""The end-to-end experiment on the job: from publish to results on disk and to a callback, against peers."""
