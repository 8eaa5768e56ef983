"""The shape of the code: rules that a program can check.

`sources` and `floors` hold the checkers, pure functions over text and graphs. One set of
tests runs them over the package, another shows that each of them finds what it should.
"""
