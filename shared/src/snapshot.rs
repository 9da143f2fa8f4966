//! The signed, versioned, immutable compiled form that every core evaluates.
//!
//! `build` turns a Definition into signed bytes; [`Snapshot::open`] turns bytes into a Snapshot, or
//! refuses them with a reason. `docs/snapshot-format.md` tells the layout.

pub mod archive;
mod build;
mod check;
mod error;
mod header;
mod keys;
mod open;
pub mod syntax;

pub use self::{
    archive::{
        ArchivedArm, ArchivedAttribute, ArchivedExperiment, ArchivedFact, ArchivedLayer,
        ArchivedModelVersion, ArchivedObjective, ArchivedOutcome, ArchivedPayload, ArchivedRule,
        ArchivedShadowTarget, ArchivedShard, ArmIndex, AttributeIndex, ExperimentIndex, FactIndex,
        LayerIndex, ModelIndex, ObjectiveIndex, RuleIndex, ShardIndex,
    },
    build::{BuildError, build, check, compile, sign},
    check::{CheckError, Fault, Object, Part, Place},
    error::SnapshotError,
    header::{Digest, FORMAT, HEADER_BYTES, Header, MAGIC, SnapshotId, SnapshotVersion},
    keys::{KeyError, KeyId, PublicKey, SecretKey, TrustedKeys},
    open::{Expectations, HASH_VERSION, Snapshot},
};
