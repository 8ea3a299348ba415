"""The stem of an English word (M. F. Porter, "An algorithm for suffix stripping", 1980)."""

import re

VOWELS = "aeiou"
STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("abli", "able"),
    ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"),
    ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
    ("iviti", "ive"), ("biliti", "ble"),
)  # fmt: skip
STEP_3 = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)
STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
)  # fmt: skip
STEP_4_LONGEST_FIRST = sorted(STEP_4, key=lambda suffix: (-len(suffix), suffix))
MEASURE = re.compile("v+c+")
PLAIN = re.compile(r"[a-z]+\Z")


def stem(word: str) -> str:
    """The stem of a lower-case word; a word of other letters than a-z, or of two letters, is its own stem."""
    if len(word) <= 2 or not PLAIN.match(word):
        return word
    word = _plurals(word)
    word = _past_and_gerund(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replace(word, STEP_2)
    word = _replace(word, STEP_3)
    word = _strip(word)
    return _tidy(word)


def _shape(word: str) -> str:
    kinds: list[str] = []
    for letter in word:
        vowel = letter in VOWELS or (letter == "y" and bool(kinds) and kinds[-1] == "c")
        kinds.append("v" if vowel else "c")
    return "".join(kinds)


def _measure(word: str) -> int:
    return len(MEASURE.findall(_shape(word)))


def _has_vowel(word: str) -> bool:
    return "v" in _shape(word)


def _ends_double(word: str) -> bool:
    return len(word) >= 2 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _ends_cvc(word: str) -> bool:
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _plurals(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _past_and_gerund(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        root = word[: -len(suffix)]
        if word.endswith(suffix):
            return _restore(root) if _has_vowel(root) else word
    return word


def _restore(root: str) -> str:
    if root.endswith(("at", "bl", "iz")):
        return root + "e"
    if _ends_double(root) and root[-1] not in "lsz":
        return root[:-1]
    return root + "e" if _measure(root) == 1 and _ends_cvc(root) else root


def _replace(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    for suffix, replacement in rules:
        if word.endswith(suffix):
            root = word[: -len(suffix)]
            return root + replacement if _measure(root) > 0 else word
    return word


def _strip(word: str) -> str:
    for suffix in STEP_4_LONGEST_FIRST:
        if word.endswith(suffix):
            root = word[: -len(suffix)]
            stripped = _measure(root) > 1 and (suffix != "ion" or root.endswith(("s", "t")))
            return root if stripped else word
    return word


def _tidy(word: str) -> str:
    if word.endswith("e"):
        root = word[:-1]
        measure = _measure(root)
        if measure > 1 or (measure == 1 and not _ends_cvc(root)):
            word = root
    if word.endswith("ll") and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word
