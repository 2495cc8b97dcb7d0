"""What the engines share on torch devices."""
