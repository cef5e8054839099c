//! The tree against a simple model.
