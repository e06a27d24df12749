"""The kinds of reasons, in words for a count. The sentence of a row says more."""

LABELS = {
    "length": "Max tokens reached",
    "thinking": "Spent all its tokens thinking",
    "unfinished": "Stopped before the end",
    "invalid_json": "Not valid JSON",
    "schema": "Does not match the schema",
    "empty": "Empty text",
    "duplicate": "Duplicate of another row",
    "near_duplicate": "Near-duplicate of another row (text)",
    "seed_duplicate": "Near-duplicate of a seed row (text)",
    "near_meaning": "Near-duplicate of another row (meaning)",
    "seed_meaning": "Near-duplicate of a seed row (meaning)",
    "contaminated": "Repeats a test set text",
    "judged": "Judge score too low",
    "by_hand": "Rejected by you",
    "check_length": "Too short or too long",
    "check_contains": "Required text missing",
    "check_lacks": "Contains forbidden text",
    "check_matches": "Does not match the pattern",
    "check_differs": "Matches a forbidden pattern",
    "check_language": "Wrong language",
    "check_expression": "Failed a check",
    "bad_prompt": "Prompt could not be built",
    "worker_died": "Worker stopped while it ran",
    "not_storable": "Could not be stored",
    "internal_error": "Workbench error",
    "prompt_too_long": "Prompt longer than the context per slot",
    "bad_request": "Server rejected the request",
    "stalled": "Server stopped responding",
    "cut_off": "Connection lost",
    "server_failed": "Server error",
    "pool_exhausted": "Server context full",
}


def label_of(code: str) -> str:
    return LABELS.get(code, code.replace("_", " ").capitalize())
