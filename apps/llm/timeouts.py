"""Time limits of requests to a model server, in seconds, each with its reason.

A slow machine is not a broken one: only silence ends a request, never the length of an answer.
"""

# A server that runs accepts a connection at once, also while it computes.
CONNECT_SECONDS = 5.0
# Before the first byte a slow machine may process a prompt of tens of thousands of tokens.
FIRST_BYTE_SECONDS = 300.0
# An answer that is not streamed has no byte before its end.
WHOLE_ANSWER_SECONDS = 3600.0
# llama-server writes a comment every 30 s while it has nothing else to say.
GAP_SECONDS = 65.0
# Comments alone may arrive for this long: a slow machine processes a long prompt.
QUIET_SECONDS = 900.0
# The server's own routes ("/props", "/slots") compute nothing.
NATIVE_SECONDS = 5.0
# It writes or reads a slot file: gigabytes of a long context on a slow disk.
SLOT_FILE_SECONDS = 120.0
# llama-server closes a connection after five idle seconds. One second less, and requests seldom
# meet a connection that is being closed.
IDLE_SECONDS = 4.0
# A request is repeated on a closed connection only where it was probably reused.
REUSE_SECONDS = 4.0
