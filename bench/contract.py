"""The contract that everything here is read under; it knows where its file lies and nothing of its rules."""

from pathlib import Path

from client.contract import load

DIALECT = "openai-chat"
CONTRACT = load("bench/1", Path(__file__).parent)
