"""The same rows by distilabel, in a virtual environment of its own: started by
bench.generation.generate.

python bench/generation/distilabel_rows.py TASK.json: `base_url`, `api_key`, `system`, `prompts`,
`max_tokens`, `temperature`, `response_format`. distilabel sends a batch of rows at once and waits
for all of it; a seed per row cannot be given.
"""

import json
import sys
from pathlib import Path

from distilabel.models.llms import OpenAILLM  # type: ignore[import-not-found]
from distilabel.pipeline import Pipeline  # type: ignore[import-not-found]
from distilabel.steps import LoadDataFromDicts  # type: ignore[import-not-found]
from distilabel.steps.tasks import TextGeneration  # type: ignore[import-not-found]


def main(path: Path) -> None:
    task = json.loads(path.read_text())
    with Pipeline(name="bench") as pipeline:
        rows = LoadDataFromDicts(
            data=[{"instruction": prompt} for prompt in task["prompts"]], batch_size=50
        )
        writer = TextGeneration(
            llm=OpenAILLM(
                model="any",
                base_url=task["base_url"],
                api_key=task["api_key"],
                timeout=600,
                generation_kwargs={
                    "max_new_tokens": task["max_tokens"],
                    "temperature": task["temperature"],
                    "extra_body": {"response_format": task["response_format"]},
                },
            ),
            system_prompt=task["system"],
            use_system_prompt=True,
            input_batch_size=50,  # its default
        )
        rows >> writer
    found = pipeline.run(use_cache=False)["default"]["train"]
    print(json.dumps({"rows": sum(row["generation"] is not None for row in found)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
