"""Console scripts: each turns a program, a model or a person into an agent."""
