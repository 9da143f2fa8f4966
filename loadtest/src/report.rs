//! What a run found out, for people and for programs.

pub mod percentiles;
pub mod plot;
pub mod progress;
pub mod summary;
pub mod table;
pub mod timeline;
