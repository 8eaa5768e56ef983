"""What each noun looks like: a table for a person at a terminal, else records; JSON when asked for."""
