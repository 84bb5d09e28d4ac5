"""The description of the API, made of the routes and the types that there are (OpenAPI 3.1)."""
