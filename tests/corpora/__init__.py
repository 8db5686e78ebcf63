"""Inputs that nobody here chose: a fetched JSON corpus, and event streams rewritten from two public suites."""
