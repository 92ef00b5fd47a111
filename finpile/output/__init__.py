"""The output folder of a build: layout, lock, records of stages, manifest, snapshots, takedowns, published files."""
