"""The experiment of NiagaraCQ."""
