"""KV caches kept as files at the model servers, which restore them in milliseconds."""
