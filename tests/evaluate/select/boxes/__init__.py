"""Tests of fishweir.evaluate.select.boxes."""
