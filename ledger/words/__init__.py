"""The words of the record for people: the same on a page, on a terminal and in a report."""
