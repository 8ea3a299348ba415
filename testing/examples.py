"""How many examples hypothesis tries where a fault hides in rare texts: twice as many as elsewhere."""

from hypothesis import settings

MANY = settings(max_examples=100)
