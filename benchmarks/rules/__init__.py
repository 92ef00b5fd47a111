"""Filters beside datatrove's: decisions, speed, and what each rule set keeps of labelled pages."""

from pathlib import Path


def datatrove_peer_path() -> Path:
    """The script that runs in an environment with datatrove."""
    return Path(__file__).with_name("datatrove_peer.py")
