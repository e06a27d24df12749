"""Programs that others have written, each a script for an environment of its own."""
