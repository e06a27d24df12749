"""How requests reach a model server: the SDK, its connections and certificates."""
