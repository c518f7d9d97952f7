//! Semantics (section 3.4).
