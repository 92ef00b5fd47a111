"""Documents that contain items of evaluation sets."""
