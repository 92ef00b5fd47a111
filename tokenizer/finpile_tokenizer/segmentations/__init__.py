"""All segmentations of a text: the n best, random samples, and the sum of their probabilities."""
