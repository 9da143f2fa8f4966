//! Shadow targets in the archived form.

use rkyv::{Archive, Serialize};

use super::{ArmIndex, AttributeIndex, ModelIndex};
use crate::{
    definition::{Members, SampleBy},
    slot::SlotKey,
};

/// A candidate that gets a sample of an Objective's requests.
#[derive(Archive, Serialize)]
pub struct ShadowTarget {
    /// `SlotKey::derive_sample` of the Objective's token.
    pub key: [u8; 32],
    /// How many of 10 000.
    pub sample: u16,
    /// What is drawn.
    pub by: SampleBy,
    /// The attribute that is drawn, and the records' key.
    pub unit: Option<AttributeIndex>,
    /// Only requests that are decided for this Arm.
    pub arm: Option<ArmIndex>,
    /// The candidate.
    pub model: ModelIndex,
    /// Whether the answer's body is copied, too.
    pub captures_response: bool,
    /// Bytes of records per second and router.
    pub bytes_per_second_max: Option<u64>,
    /// Kafka topic.
    pub topic: Option<String>,
    /// What of JSON bodies is kept.
    pub members: Members,
}

impl ArchivedShadowTarget {
    /// The key under which Units are drawn.
    pub const fn key(&self) -> SlotKey {
        SlotKey::from_bytes(self.key)
    }

    /// The attribute that is drawn.
    pub fn unit(&self) -> Option<AttributeIndex> {
        self.unit.as_ref().map(|unit| unit.to_native())
    }

    /// Whether requests that are decided for `arm` are meant.
    pub fn wants(&self, arm: ArmIndex) -> bool {
        self.arm.as_ref().is_none_or(|wanted| wanted.to_native() == arm)
    }
}
