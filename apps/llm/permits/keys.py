"""The names of the permits' keys in Redis."""


def permit_key(server_id: int, part: str = "") -> str:
    """The key of a server's permits, or of one `part` of what is kept about them.

    Parts: "people", "models", "limit:<scope>", "turns:<scope>", "prefixes:<scope>", "model-uses",
    "model-waits", "wait-reason", "rates:<number>".
    """
    name = f"slots:{{{server_id}}}"
    return f"{name}:{part}" if part else name
