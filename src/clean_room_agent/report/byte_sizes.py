"""Sizes in bytes, as people read them."""

UNITS = ("kB", "MB", "GB", "TB")
THOUSAND = 1000


def size_text(size: int) -> str:
    """`size` bytes in the largest unit of which there is one: `0 B`, `1.2 MB`."""
    value, unit = float(size), "B"
    for larger in UNITS:
        if round(value, 1) < THOUSAND:
            break
        value, unit = value / THOUSAND, larger
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
