"""Single parts by themselves; where a part needs SQLite or a process, a real one."""
