"""Stages that remove duplicates, and the steps that they share."""
