"""Arrow string arrays as NumPy buffers, in ranges and among threads: which all other packages use."""
