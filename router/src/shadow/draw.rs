//! Which of a request's shadow targets want it. Pure.

use switchboard_shared::context::Context;
use switchboard_shared::definition::SampleBy;
use switchboard_shared::slot::{Slot, Unit};
use switchboard_shared::snapshot::{ArchivedObjective, ArmIndex, AttributeIndex};

/// Some of an Objective's shadow targets, by their place.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Targets(u8);

const _: () = assert!(switchboard_shared::limits::SHADOW_TARGETS_MAX <= 8, "a bit for each target");

impl Targets {
    /// None of them.
    pub const NONE: Self = Self(0);

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    #[must_use]
    pub fn count(self) -> u64 {
        u64::from(self.0.count_ones())
    }

    /// Whether the one at `place` is among them.
    #[must_use]
    pub const fn has(self, place: usize) -> bool {
        place < 8 && self.0 >> place & 1 == 1
    }

    fn add(&mut self, place: usize) {
        debug_assert!(place < 8, "checked when the Snapshot was opened");
        self.0 |= 1 << place;
    }
}

/// Draws. `random` gives uniform bits, and is asked only by targets that sample at random.
///
/// Hot path: no allocation; one keyed hash at most per attribute that is drawn by, and usually there is one.
pub fn draw(
    objective: &ArchivedObjective,
    context: &Context<'_>,
    arm: ArmIndex,
    mut random: impl FnMut() -> u64,
) -> Targets {
    let mut targets = Targets::NONE;
    let mut last: Option<(AttributeIndex, Option<Slot>)> = None;
    for (place, target) in objective.shadow.iter().enumerate() {
        if !target.wants(arm) {
            continue;
        }
        let slot = match target.by.to_native() {
            SampleBy::Random => Some(fraction(random())),
            SampleBy::Unit => target.unit().and_then(|attribute| match last {
                // All targets of an Objective draw under one key.
                Some((known, slot)) if known == attribute => slot,
                _ => {
                    let unit = context.unit(attribute);
                    let slot = unit.map(|unit: Unit<'_>| Slot::of(&target.key(), &unit).get());
                    let slot = slot.and_then(Slot::new);
                    last = Some((attribute, slot));
                    slot
                }
            }),
        };
        if slot.is_some_and(|slot| slot.get() < target.sample.to_native()) {
            targets.add(place);
        }
    }
    targets
}

/// 64 uniform bits as one of 10 000.
fn fraction(bits: u64) -> Slot {
    let slot = (u128::from(bits) * u128::from(Slot::COUNT)) >> 64;
    u16::try_from(slot).ok().and_then(Slot::new).unwrap_or(Slot::LAST)
}

#[cfg(test)]
mod tests {
    use switchboard_shared::context::Value;
    use switchboard_shared::definition::{Definition, Members, ShadowTarget};
    use switchboard_shared::snapshot::Snapshot;

    use super::*;
    use crate::samples;

    fn target(sample: u16, by: SampleBy, arm: Option<&str>) -> ShadowTarget {
        ShadowTarget {
            model: "ranker@2".into(),
            arm: arm.map(Into::into),
            sample,
            by,
            unit: Some("user_id".into()),
            bytes_per_second_max: None,
            topic: None,
            captures_response: false,
            members: Members::All,
        }
    }

    fn snapshot(targets: Vec<ShadowTarget>) -> Snapshot {
        let mut definition: Definition = samples::definition(&["FEED"], &["127.0.0.1:1"]);
        definition.objectives[0].shadow = targets;
        samples::snapshot(&definition, 1)
    }

    fn drawn(snapshot: &Snapshot, unit: Option<&str>, arm: &str, random: u64) -> Targets {
        let objective = snapshot.payload().objective(snapshot.find(b"FEED").unwrap()).unwrap();
        let mut context = Context::with_defaults(objective);
        let (index, _) = objective.attributes().find(|(_, one)| one.name == "user_id").unwrap();
        if let Some(unit) = unit {
            context.set(index, Value::Text(unit));
        }
        draw(objective, &context, objective.arm_named(arm).unwrap(), || random)
    }

    #[test]
    fn a_smaller_sample_is_part_of_a_larger_one() {
        let small = target(500, SampleBy::Unit, None);
        let large =
            ShadowTarget { model: "ranker@1".into(), ..target(2_000, SampleBy::Unit, None) };
        let snapshot = snapshot(vec![small, large]);
        let mut counts = [0_u32; 2];
        for number in 0..20_000_u32 {
            let targets = drawn(&snapshot, Some(&number.to_string()), "stable", 0);
            assert!(!targets.has(0) || targets.has(1), "{number}");
            counts[0] += u32::from(targets.has(0));
            counts[1] += u32::from(targets.has(1));
        }
        // Six standard deviations of 20 000 × 0.05 and × 0.2 are 185 and 340.
        assert!(counts[0].abs_diff(1_000) < 185 && counts[1].abs_diff(4_000) < 340, "{counts:?}");
    }

    #[test]
    fn without_a_unit_nothing_is_drawn_by_unit() {
        let snapshot = snapshot(vec![target(10_000, SampleBy::Unit, None)]);
        assert_eq!(drawn(&snapshot, None, "stable", 0), Targets::NONE);
        assert_eq!(drawn(&snapshot, Some(" "), "stable", 0), Targets::NONE);
        assert!(drawn(&snapshot, Some("u1"), "stable", 0).has(0));
    }

    #[test]
    fn a_target_of_an_arm_wants_only_that_arms_requests() {
        let snapshot = snapshot(vec![target(10_000, SampleBy::Random, Some("heavy"))]);
        assert!(drawn(&snapshot, None, "stable", 0).is_empty());
        assert_eq!(drawn(&snapshot, None, "heavy", 0).count(), 1);
    }

    #[test]
    fn random_bits_are_drawn_by_their_size() {
        let snapshot = snapshot(vec![target(1, SampleBy::Random, None)]);
        let first_without = u64::MAX / 10_000 + 1;
        assert!(drawn(&snapshot, None, "stable", first_without - 1).has(0));
        assert!(drawn(&snapshot, None, "stable", first_without).is_empty());
        assert!(drawn(&snapshot, None, "stable", u64::MAX).is_empty());
    }
}
