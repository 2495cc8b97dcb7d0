"""The objective: maps masks to losses."""
