"""Column names: found in the first row of a table, made unique."""


def column_names(first: list[str], header: bool) -> tuple[tuple[str, ...], int]:
    """Return a name for each cell of the first row, each different, and how many had stray spaces.

    Args:
        header: the first row holds names; else columns are numbered.
    """
    if not header:
        return tuple(f"column {number}" for number in range(1, len(first) + 1)), 0
    names: list[str] = []
    taken: set[str] = set()
    cleaned = 0
    for number, cell in enumerate(first, start=1):
        tidy = " ".join(cell.split())
        cleaned += tidy != cell
        name = free = tidy or f"column {number}"
        copy = 2
        while free in taken:
            free = f"{name} ({copy})"
            copy += 1
        taken.add(free)
        names.append(free)
    return tuple(names), cleaned


def looks_like_header(rows: list[list[str]], known: set[str]) -> bool:
    """Return True if the first row holds names.

    Args:
        known: names that people give their columns, in lower case.
    """
    first, rest = rows[0], rows[1:]
    if any("_".join(cell.casefold().split()) in known for cell in first):
        return True
    if any(not cell.strip() or len(cell) > 60 for cell in first):
        return False
    # A label repeats as a value further down; a name does not.
    return not any(
        cell.strip() == row[place].strip()
        for place, cell in enumerate(first)
        for row in rest
        if place < len(row)
    )
