SWEEP = "tuning.sweep"
"""The kind of a durable task that measures a server."""
DOCTOR = "tuning.doctor"
"""The kind of a durable task that examines a server."""
