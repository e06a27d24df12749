"""Short chat templates, each of the kind of a family of models that think."""

from tests.tiny_gguf import ALWAYS_THINKING_TEMPLATE, THINKING_TEMPLATE

# Listens to `enable_thinking`; thinks unless it is told not to.
QWEN = THINKING_TEMPLATE
# Listens to nothing. The thought begins with a line break, which llama.cpp counts as its token.
DEEPSEEK_R1 = ALWAYS_THINKING_TEMPLATE.replace("<think>\n{%", '{{ "<think>\\n" }}{%')
# Listens to `reasoning_effort`, which cannot turn it off.
GPT_OSS = """{%- set effort = reasoning_effort if reasoning_effort is defined else "medium" -%}
<|start|>system<|message|>Reasoning: {{ effort }}<|end|>
{%- for message in messages %}
{%- if message.role == "assistant" %}
{%- if message.thinking %}<|start|>assistant<|channel|>analysis<|message|>
{{- message.thinking }}<|end|>{% endif -%}
<|start|>assistant<|channel|>final<|message|>{{ message.content }}<|return|>
{%- else %}<|start|>{{ message.role }}<|message|>{{ message.content }}<|end|>
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|start|>assistant{% endif %}"""
# Listens to `thinking`; thinks only if it is told to.
GRANITE = """{%- for message in messages %}
{%- if loop.first and thinking %}<|start_of_role|>system<|end_of_role|>
{{- "Write your thoughts between <think></think>." }}<|end_of_text|>
{% endif %}<|start_of_role|>{{ message.role }}<|end_of_role|>{{ message.content }}<|end_of_text|>
{% endfor %}{% if add_generation_prompt %}<|start_of_role|>assistant<|end_of_role|>{% endif %}"""

TEMPLATES = {"qwen": QWEN, "deepseek-r1": DEEPSEEK_R1, "gpt-oss": GPT_OSS, "granite": GRANITE}
