"""Drive agent programs: their command lines, ACP, the settings for MCP, their failures."""
