"""Tools of other programs: servers that speak the Model Context Protocol.

models       tool servers and the tools they last listed
connection   a connection to one: its own process, or streamable HTTP
sessions     open connections, reused for the next call of the same person
discovery    asks a server for its tools
tools        its tools, as the chat offers them to a model
results      results of calls as text
"""
