"""What the experiments share: data, timing, tables, plots."""
