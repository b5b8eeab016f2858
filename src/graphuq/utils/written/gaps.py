"""Words that stand for "nothing" in a cell."""

GAP_WORDS = frozenset(
    {"?", "??", "-", "--", "–", "—", ".", "..", "na", "n/a", "n.a.", "n.a", "#n/a", "nan", "<na>"}
    | {"none", "null", "nil", "missing", "unknown", "unk", "undefined", "unspecified", "n.d."}
    | {"not available", "not applicable", "no answer", "no data", "tbd", "todo", "#value!"}
)
"""In lower case. They are empty cells among numbers and dates, but not among other texts."""


def is_gap_word(text: str) -> bool:
    """Return whether a text is blank or a word for "nothing"."""
    word = text.strip().casefold()
    return not word or word in GAP_WORDS
