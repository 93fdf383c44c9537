"""Annotation joins of RoSeS: windows over feeds, and the annotations that their items produce."""
