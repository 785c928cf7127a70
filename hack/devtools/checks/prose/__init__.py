"""A linter of the documents' prose: short sentences, one a line, the field's words, no diary.

Why not vale, which is made for this: its Go module (3.15.2) takes 107 s of processor time to compile on a fresh
machine. Its package on PyPI has no program: it downloads one when it first runs, without a pinned sum.
This check takes 0.2 s.
"""
