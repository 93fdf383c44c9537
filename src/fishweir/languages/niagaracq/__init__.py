"""NiagaraCQ: XML-QL queries with actions and schedules."""
