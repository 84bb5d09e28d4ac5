"""Pure functions from records to what a page shows: words, numbers and geometry. No I/O, no clock."""
