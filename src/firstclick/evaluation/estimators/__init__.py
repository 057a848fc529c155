"""The value of a policy from weighted slates: estimators, intervals, and whether the log can answer."""
