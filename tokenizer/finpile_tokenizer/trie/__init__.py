"""Tries of the pieces: a double array for the encoder, a hash table for lattices, n-best, sampling and likelihood."""
