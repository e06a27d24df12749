MODEL_ACTION = "servers.model_action"
"""The kind of a durable task that loads, unloads, warms, downloads or deletes a model."""
