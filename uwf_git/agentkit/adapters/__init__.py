"""One file per console script: each turns a program, a model or a person into an agent."""
