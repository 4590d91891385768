"""One monitored run: events, rules, annotations and operators joined."""
