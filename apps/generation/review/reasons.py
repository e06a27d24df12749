"""The kinds of reasons, in words for a count. The sentence of a row says more."""

LABELS = {
    "length": "Cut off at the largest number of tokens",
    "thinking": "Spent all its tokens thinking",
    "unfinished": "Not ended by the model itself",
    "invalid_json": "Not valid JSON",
    "schema": "Does not fit the schema",
    "empty": "Empty text",
    "duplicate": "Duplicate of another row",
    "near_duplicate": "Nearly the same as another row",
    "seed_duplicate": "Nearly the same as a seed row",
    "near_meaning": "Nearly the same in meaning as another row",
    "seed_meaning": "Nearly the same in meaning as a seed row",
    "contaminated": "Repeats the test set",
    "judged": "The judge's score is too low",
    "by_hand": "Rejected by you",
    "check_length": "Too short or too long",
    "check_contains": "Lacks what must be in it",
    "check_lacks": "Has what must not be in it",
    "check_matches": "Does not match a pattern",
    "check_differs": "Matches a pattern it must not",
    "check_language": "In another language",
    "check_expression": "A check of yours says no",
    "bad_prompt": "The prompt could not be put together",
    "worker_died": "The worker ended while it ran",
    "not_storable": "Could not be stored",
    "internal_error": "A mistake of the workbench",
    "prompt_too_long": "The prompt is longer than a slot",
    "bad_request": "The server does not take the request",
    "stalled": "The server fell silent",
    "cut_off": "The connection broke",
    "server_failed": "The server failed",
    "pool_exhausted": "The server's context was full",
}


def label_of(code: str) -> str:
    return LABELS.get(code, code.replace("_", " ").capitalize())
