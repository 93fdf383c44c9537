"""The experiment on the refresh strategy of feeds."""
