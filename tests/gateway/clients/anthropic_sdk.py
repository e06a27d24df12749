"""Anthropic's SDK: messages, streamed too, token counts and its own error classes."""

import os

import anthropic

root, key, model = (os.environ[name] for name in ("ROOT", "KEY", "MODEL"))
asked = {"max_tokens": 8, "messages": [{"role": "user", "content": "Say something."}]}
client = anthropic.Anthropic(base_url=root, api_key=key, max_retries=0)
answer = client.messages.create(model=model, **asked)
assert answer.role == "assistant", answer
assert answer.usage.output_tokens > 0
with client.messages.stream(model=model, **asked) as stream:
    assert stream.get_final_message().usage.output_tokens > 0
assert client.messages.count_tokens(model=model, messages=asked["messages"]).input_tokens > 0
try:
    client.messages.create(model="claude-unknown", **asked)
    raise AssertionError("an unknown model answered")
except anthropic.NotFoundError as error:
    assert "claude-unknown" in str(error)
try:
    anthropic.Anthropic(base_url=root, api_key="wb_no", max_retries=0).messages.create(
        model=model, **asked
    )
    raise AssertionError("a wrong key was taken")
except anthropic.AuthenticationError:
    pass
limited = anthropic.Anthropic(base_url=root, api_key=os.environ["LIMITED"], max_retries=0)
try:
    limited.messages.create(model=model, max_tokens=9, messages=asked["messages"])
    raise AssertionError("more tokens than its key may have were answered")
except anthropic.BadRequestError as error:
    assert "8 tokens at most" in str(error)
try:
    for _ in range(2):  # two requests a minute
        limited.messages.create(model=model, **asked)
    raise AssertionError("a third request was answered")
except anthropic.RateLimitError as error:
    assert int(error.response.headers["retry-after"]) > 0
try:
    client.messages.create(model="away", **asked)
    raise AssertionError("a server that is away answered")
except anthropic.InternalServerError as error:
    assert error.status_code == 503
