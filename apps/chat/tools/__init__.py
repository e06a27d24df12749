"""Tools: what a model may call while it answers, round after round.

settings   which tools a conversation offers, and when each may run
calling    the calls of one round: put together, checked, approved, run, kept
history    calls and results as turns of the prompt and as parts of the page
builtin    what every conversation can offer: calculator, clock, search
fetching   the text behind a URL, where staff allow it
"""
