"""How requests reach a model server: the SDK, its connections, certificates and time limits."""
