"""Mutation testing: makes the mistakes that people make and sees whether the checks catch them."""
