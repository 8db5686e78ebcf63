"""The 36 provider streams of the protocol digest, each with the dialect that its name begins with."""

from pathlib import Path

STREAMS = Path(__file__).parent / "vectors" / "protocol"
_SPOKEN = {
    "ant": "anthropic",
    "az": "openai-chat",
    "bed": "bedrock",
    "coh": "cohere",
    "gem": "gemini",
    "mis": "mistral",
    "oai_chat": "openai-chat",
    "oai_resp": "openai-responses",
    "oll": "ollama",
    "or": "openai-chat",
}


def provider_streams() -> dict[Path, str]:
    """Give the dialect of every stream, in the order of their names."""
    return {path: _dialect(path.name) for path in sorted(STREAMS.iterdir())}


def _dialect(name: str) -> str:
    return next(dialect for start, dialect in _SPOKEN.items() if name.startswith(f"{start}_"))
