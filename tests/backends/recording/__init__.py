"""Replies of the programs, written down, and the stand-ins held to them."""
