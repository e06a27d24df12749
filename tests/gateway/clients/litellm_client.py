"""LiteLLM as a client."""

import os

import litellm

root, key, model = (os.environ[name] for name in ("ROOT", "KEY", "MODEL"))
answer = litellm.completion(
    model=f"openai/{model}",
    api_base=f"{root}/v1",
    api_key=key,
    max_tokens=8,
    messages=[{"role": "user", "content": "Say something."}],
)
assert answer.usage.completion_tokens > 0
