"""Stages that read, clean, split and report documents."""
