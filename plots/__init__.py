"""Pictures of a sealed run: preview lengths of all trials, and the byte lanes of one exchange.

This island asks the auditor and draws what it says. It may not know how a body is judged, what an
archive looks like inside, or anything of `client/` and `harness/`. `python -m plots DIR` is the way
in; the pictures lie beside the archive, never in it.
"""
