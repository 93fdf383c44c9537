"""Tests of fishweir.papers.spatialjoin.regions."""
