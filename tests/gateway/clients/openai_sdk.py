"""OpenAI's SDK of another version than the workbench's own: chat, responses, completions."""

import os

import openai

root, key, model = (os.environ[name] for name in ("ROOT", "KEY", "MODEL"))
client = openai.OpenAI(base_url=f"{root}/v1", api_key=key, max_retries=0)
messages = [{"role": "user", "content": "Say something."}]
assert model in {one.id for one in client.models.list()}
answer = client.chat.completions.create(model=model, messages=messages, max_tokens=8)
assert answer.usage.completion_tokens > 0
stream = client.chat.completions.create(model=model, messages=messages, max_tokens=8, stream=True)
assert list(stream)[-1].choices[0].finish_reason
assert client.completions.create(model=model, prompt="Once", max_tokens=4).choices
assert client.responses.create(model=model, input="Say something.", max_output_tokens=8).output
