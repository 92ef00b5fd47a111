"""Charts of the page of a build: each module has its `CHART`."""
