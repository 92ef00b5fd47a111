"""Runs Beam pipelines on an engine, watches the workers of the local runner, and compiles kernels in the background."""
