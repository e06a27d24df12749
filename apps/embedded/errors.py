class StartError(Exception):
    """Workbench cannot start. The message is one sentence for the terminal."""
