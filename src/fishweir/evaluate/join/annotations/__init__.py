"""RoSeS' annotation join: windows of feeds, and the annotations that their items make."""
