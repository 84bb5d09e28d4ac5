"""What applications may have asked and told at each boundary: policies and observers."""
