"""uwf: multi-agent workflows, one step per process, with git as the audit trail."""
