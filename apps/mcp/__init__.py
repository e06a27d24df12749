"""Tools of other programs: servers that speak the Model Context Protocol.

models       a server, and the tools it was last seen to have
connecting   a connection to one: its own process, or streamable HTTP
sessions     connections that are kept for the next call of the same person
discovery    asks a server for its tools
offering     its tools, as the chat offers them to a model
"""
