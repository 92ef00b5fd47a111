"""Arrow string arrays as NumPy buffers, in ranges and among threads: the ground that the other rooms share."""
