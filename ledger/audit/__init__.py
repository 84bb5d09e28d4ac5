"""What an auditor does with a record: carry it away and check it, walk through it, compare runs, report on a period."""
