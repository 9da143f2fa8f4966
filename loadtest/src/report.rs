//! What a run found out, for people and for programs.

pub mod folder;
pub mod interval_log;
pub mod page;
pub mod percentiles;
pub mod plot;
pub mod plots;
pub mod progress;
pub mod shares;
pub mod summary;
pub mod table;
pub mod timeline;
