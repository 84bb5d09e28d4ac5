"""What every endpoint needs of HTTP: what a request asks for, the one shape of an answer, tags, headers, problems."""
