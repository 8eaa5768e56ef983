"""The provider `acp`: any agent that speaks the Agent Client Protocol, one process for each turn.

- `settings`: what `hiboss agent set` takes
- `known_agents`: what well-known agents need: how to install them, how to log in
- `connection`: JSON-RPC over the lines of the program: calls both ways
- `opening`: the beginning of a turn: hello, a session, the model
- `conversation`: one turn: its prompt, and what the agent asks
- `resumption`: agents that cannot resume what they said they could
- `output`: what the agent does during the prompt: text, tools, tokens, cost
- `questions`: what it asks people: permissions and forms
- `failures`: what its errors mean
- `provider`: all of this together

The protocol: https://agentclientprotocol.com (version 1).
"""
