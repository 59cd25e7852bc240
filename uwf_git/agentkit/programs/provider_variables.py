"""The environment variables in which programs look for a model's endpoint and key.

Only model providers: a key for anything else (a forge, a cloud's storage) has to be allowed by the
setting ``env``.
"""

PROVIDER_VARIABLES: tuple[str, ...] = (
    "OPENAI_*", "ANTHROPIC_*", "GEMINI_*", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
    "VERTEX_*", "VERTEXAI_*", "AZURE_OPENAI_*", "AZURE_API_*", "AZURE_RESOURCE_NAME",
    "AWS_PROFILE", "AWS_REGION", "AWS_REGION_NAME", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK",
    "OPENROUTER_*", "DEEPSEEK_*", "GROQ_*", "MISTRAL_*", "XAI_*", "COHERE_*", "TOGETHER_*",
    "TOGETHERAI_*", "FIREWORKS_*", "CEREBRAS_*", "MOONSHOT_*", "KIMI_*", "DASHSCOPE_*", "GLM_*",
    "ZAI_*", "ZHIPUAI_*", "MINIMAX_*", "NOUS_*", "DATABRICKS_*", "LITELLM_*", "OLLAMA_*",
    "LM_STUDIO_*", "HF_TOKEN",
)  # fmt: skip
"""Names, and prefixes such as ``OPENAI_*``."""
