"""Call a model: one HTTP POST, the Anthropic and OpenAI forms, retries, structured output.

Promise: a call is bounded in time and size; an error names the endpoint, the cause and what to do.
The key is in no setting, message or log.
"""
