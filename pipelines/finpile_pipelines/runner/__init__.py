"""Runs Beam pipelines on an engine, and watches the workers of the local one."""
