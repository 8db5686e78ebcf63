"""Coverage-guided fuzzing: client and auditor agree on any bytes, and nothing crashes, hangs or grows.

A target is a function from bytes to what deviates, or None; `targets.py` lists them. Only `engine.py` knows
atheris, so that tests can ask every target without it. Never part of the product.
"""
