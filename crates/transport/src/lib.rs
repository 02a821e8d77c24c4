//! Shared-memory lanes.
pub mod wire;
