"""The store: all SQL of hiboss, over one SQLite file.

`database` opens it, `migrate` brings it up to date, `writer` is the one thread that
changes it, `store` puts them together; then one file per noun. Nothing here knows who
asks or why: the rules about callers live in `api`.
"""
