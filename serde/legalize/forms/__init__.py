"""Forms of operators that targets lack, with the rewrites that several targets share."""
