"""The quick way of commands that are called often: without Typer, which takes three quarters of their time.

`arguments` is a table of what they take, and `help_text` the help of the root: both are made from the Typer commands
(`make docs`). `parsing` reads a command line by the table, and `program` calls the function of the command, which
Typer would call too. Whatever does not match exactly goes to Typer before anything is done.
"""
