SWEEP = "tuning.sweep"
"""The kind of a durable task that measures a server."""
