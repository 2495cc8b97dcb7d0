"""Statistics and tables of finished studies."""
