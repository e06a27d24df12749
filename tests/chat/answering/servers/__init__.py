"""Answers of servers that load, are busy, stand behind others or save their slots."""
