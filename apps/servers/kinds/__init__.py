"""One module for each kind of server: what it is asked, and what its answers mean.

None of the questions loads a model, wakes one or keeps one in memory.
"""
