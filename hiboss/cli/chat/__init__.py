"""The conversation in a terminal, behind `hiboss chat`."""
