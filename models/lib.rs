//! The one list of model families.
