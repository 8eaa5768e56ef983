"""Every operation of hiboss, written once, with its parameters, result, level and errors.

`operation` is how one is declared, `caller` who asks, `desk` the one way in for every
door; then one file per noun.
"""
