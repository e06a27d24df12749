"""LangChain's chat models of both APIs."""

import os

from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

root, key, model = (os.environ[name] for name in ("ROOT", "KEY", "MODEL"))
of_openai = ChatOpenAI(base_url=f"{root}/v1", api_key=key, model=model, max_tokens=8)
of_anthropic = ChatAnthropic(base_url=root, api_key=key, model=model, max_tokens=8)
for chat in (of_openai, of_anthropic):
    assert chat.invoke("Say something.").usage_metadata["output_tokens"] > 0
    assert len(list(chat.stream("Say something."))) > 1
