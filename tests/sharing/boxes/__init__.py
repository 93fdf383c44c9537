"""Tests of fishweir.sharing.boxes."""
