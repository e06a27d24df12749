"""The kinds of reasons, in words for a count. The sentence of a row says more."""

LABELS = {
    "length": "Cut off at the largest number of tokens",
    "unfinished": "Not ended by the model itself",
    "invalid_json": "Not valid JSON",
    "schema": "Does not fit the schema",
    "empty": "Empty text",
    "duplicate": "Duplicate of another row",
    "bad_prompt": "The prompt could not be put together",
    "worker_died": "The worker ended while it ran",
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
