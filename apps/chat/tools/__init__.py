"""Tools that a model can call while it answers.

settings     tools that a conversation offers, and their approvals
call_pieces  streamed calls, put together
call_runner  the calls of an answer: approved, run, stored
approval     waiting for a person
builtin      calculator, clock, search
fetching     the text at a URL
"""
