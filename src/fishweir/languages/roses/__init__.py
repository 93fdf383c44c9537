"""RoSeS: feeds."""
