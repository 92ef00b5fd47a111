"""Engines that `--runner` names: each module has its `ENGINE`."""
