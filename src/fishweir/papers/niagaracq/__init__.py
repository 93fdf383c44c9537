"""NiagaraCQ: its experiment."""
