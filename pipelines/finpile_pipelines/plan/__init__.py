"""Predicts time, memory, shuffled bytes, disk and jobs of a build from listed inputs and measured rates. No Beam."""
