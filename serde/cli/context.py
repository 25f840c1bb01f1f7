"""What the command group shares with its commands."""

DONE, FAILED, USAGE, UNREADABLE, NOT_COMPARED, SYSTEM = range(6)  # exit codes
INTERRUPTED = 130  # by Ctrl-C, as shells have it
ARGUMENTS = "serde.arguments"  # the key of those given, for a process that is to run them again
LIMITED = "serde.limited"  # the context's object in such a process
