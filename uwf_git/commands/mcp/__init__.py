"""`uwf mcp`: the MCP server that an agent may ask about its own thread."""
