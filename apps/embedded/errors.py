class StartError(Exception):
    """Why the workbench cannot start: one sentence for the person at the terminal."""
