"""Mutation testing: changes a source in one small way at a time, and asks whether a test minds. Never a test."""
