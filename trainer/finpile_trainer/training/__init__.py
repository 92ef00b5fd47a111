"""Training: data, steps, checkpoints, measurements."""
