use proptest::{collection::btree_map, prelude::*};

use super::*;

fn weights(weights: &[(&str, u16)]) -> Weights {
    weights.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect()
}

fn fresh(weights_of: &[(&str, u16)]) -> Allocation {
    Allocation::EMPTY.reallocate(&weights(weights_of)).expect("they fit")
}

fn plain(ranges: &[SlotRange]) -> Vec<(u16, u16)> {
    ranges.iter().map(|range| (range.first().get(), range.last().get())).collect()
}

fn moved(from: Option<&str>, to: Option<&str>, slots: u16) -> Move {
    Move { from: from.map(str::to_owned), to: to.map(str::to_owned), slots }
}

/// EX-03: the first owner has the first Slot, the last owner the last, and no Slot has none.
#[test]
fn a_fresh_full_allocation_has_no_gap() {
    let allocation = fresh(&[("a", 6_404), ("b", 1), ("c", 3_595)]);
    assert_eq!(plain(allocation.ranges("a")), [(0, 6_403)]);
    assert_eq!(plain(allocation.ranges("b")), [(6_404, 6_404)]);
    assert_eq!(plain(allocation.ranges("c")), [(6_405, 9_999)]);
    assert_eq!(allocation.owner_of(Slot::LAST), Some("c"));
}

/// EX-03
#[test]
fn weights_above_the_count_are_refused() {
    let refused = Allocation::EMPTY.reallocate(&weights(&[("a", 10_000), ("b", 1)]));
    assert_eq!(refused, Err(AllocationError::TooMuch { sum: 10_001 }));
    let many = (0..10).map(|number| (number.to_string(), u16::MAX)).collect();
    let sum = 655_350;
    assert_eq!(Allocation::EMPTY.reallocate(&many), Err(AllocationError::TooMuch { sum }));
}

#[test]
fn an_owner_of_nothing_is_not_listed() {
    assert_eq!(fresh(&[("a", 0)]), Allocation::EMPTY);
    assert_eq!(fresh(&[("a", 1), ("b", 0)]).owners().len(), 1);
    assert_eq!(Allocation::EMPTY.weight("a"), 0);
}

/// EX-02: 50/50 at 20 % coverage to 50/50 at 100 %.
#[test]
fn raising_the_coverage_moves_nobody_between_arms() {
    let before = fresh(&[("a", 1_000), ("b", 1_000)]);
    let after = before.reallocate(&weights(&[("a", 5_000), ("b", 5_000)])).expect("they fit");
    assert_eq!(
        moves(&before, &after),
        [moved(None, Some("a"), 4_000), moved(None, Some("b"), 4_000)]
    );
}

/// EX-02: 90/10 to 80/20.
#[test]
fn a_shift_moves_exactly_the_points_that_must_move() {
    let before = fresh(&[("a", 9_000), ("b", 1_000)]);
    let after = before.reallocate(&weights(&[("a", 8_000), ("b", 2_000)])).expect("they fit");
    assert_eq!(moves(&before, &after), [moved(Some("a"), Some("b"), 1_000)]);
    assert_eq!(plain(after.ranges("a")), [(0, 7_999)]);
    assert_eq!(plain(after.ranges("b")), [(8_000, 9_999)]);
}

/// EX-02: a third arm of weight 0 that grows to 10 %.
#[test]
fn a_new_arm_takes_only_what_others_gave_up() {
    let before = fresh(&[("a", 5_000), ("b", 5_000), ("c", 0)]);
    let next = weights(&[("a", 4_500), ("b", 4_500), ("c", 1_000)]);
    let after = before.reallocate(&next).expect("they fit");
    assert_eq!(
        moves(&before, &after),
        [moved(Some("a"), Some("c"), 500), moved(Some("b"), Some("c"), 500)]
    );
    assert_eq!(plain(after.ranges("c")), [(4_500, 4_999), (9_500, 9_999)]);
}

#[test]
fn released_slots_go_before_those_that_nobody_owned() {
    let before = fresh(&[("a", 100), ("b", 100)]);
    let after = before.reallocate(&weights(&[("a", 90), ("b", 100), ("c", 30)])).expect("fits");
    assert_eq!(plain(after.ranges("c")), [(90, 99), (200, 219)]);
}

#[test]
fn released_slots_go_first_even_where_lower_ones_are_free() {
    let before = fresh(&[("a", 10), ("b", 10)]);
    let gap = before.reallocate(&weights(&[("b", 10)])).expect("fits");
    let after = gap.reallocate(&weights(&[("b", 6), ("c", 7)])).expect("fits");
    assert_eq!(plain(after.ranges("b")), [(10, 15)]);
    assert_eq!(plain(after.ranges("c")), [(0, 2), (16, 19)]);
}

#[test]
fn growers_take_in_the_order_of_their_names_bytewise() {
    let before = fresh(&[("m", 10)]);
    let after = before.reallocate(&weights(&[("a", 3), ("Z", 3), ("é", 3)])).expect("fits");
    assert_eq!(plain(after.ranges("Z")), [(0, 2)]);
    assert_eq!(plain(after.ranges("a")), [(3, 5)]);
    assert_eq!(plain(after.ranges("é")), [(6, 8)]);
    assert_eq!(after.owner_of(Slot::new(9).expect("a slot")), None);
}

#[test]
fn stored_ranges_come_back_in_any_order_and_joined() {
    let range = |first, last| SlotRange::of(first, last).expect("a range");
    let (a, more, b) = ([range(5, 9), range(0, 4)], [range(20, 29)], [range(10, 19)]);
    let allocation =
        Allocation::from_ranges([("a", &a[..]), ("b", &b[..]), ("a", &more[..])]).expect("good");
    assert_eq!(plain(allocation.ranges("a")), [(0, 9), (20, 29)]);
    assert_eq!(plain(allocation.ranges("b")), [(10, 19)]);
}

#[test]
fn a_slot_with_two_owners_is_refused() {
    let range = |first, last| SlotRange::of(first, last).expect("a range");
    let (one, other) = ([range(0, 10)], [range(10, 12)]);
    assert_eq!(
        Allocation::from_ranges([("b", &one[..]), ("a", &other[..])]),
        Err(AllocationError::OwnedTwice {
            slot: Slot::new(10).expect("a slot"),
            one: "a".to_owned(),
            other: "b".to_owned(),
        })
    );
    let twice = [range(0, 10), range(3, 4)];
    assert!(Allocation::from_ranges([("a", &twice[..])]).is_err());
}

/// Weights of up to six owners that fit: each is scaled so that all of them do.
fn any_weights() -> impl Strategy<Value = Weights> {
    let edge = prop_oneof![Just(0_u16), Just(1), Just(10_000), 0..=10_000_u16];
    (btree_map("[a-dA-Zé]{1,2}", edge, 0..6), any::<bool>()).prop_map(|(mut weights, full)| {
        let sum: u32 = weights.values().map(|weight| u32::from(*weight)).sum();
        if sum > 10_000 {
            for weight in weights.values_mut() {
                *weight = u16::try_from(u32::from(*weight) * 10_000 / sum).expect("smaller");
            }
        }
        // Often exactly full, which rounding down would never be.
        let left = 10_000 - weights.values().sum::<u16>();
        if let (true, Some(weight)) = (full, weights.values_mut().next()) {
            *weight += left;
        }
        weights
    })
}

/// Every Slot's owner.
fn owners(allocation: &Allocation) -> Vec<Option<&str>> {
    let mut all = vec![None; 10_000];
    for (name, ranges) in allocation.owners() {
        for slot in ranges.iter().flat_map(|range| range.slots()) {
            let before = all[usize::from(slot.get())].replace(name);
            assert_eq!(before, None, "slot {slot} has two owners");
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// EX-02, all laws at once, over a chain of changes and every Slot.
    #[test]
    fn every_change_keeps_the_laws(chain in proptest::collection::vec(any_weights(), 1..6)) {
        let mut before = Allocation::EMPTY;
        let nothing = Weights::new();
        let mut old = &nothing;
        for new in &chain {
            let after = before.reallocate(new).expect("they fit");
            let (owner_before, owner_after) = (owners(&before), owners(&after));
            let weight = |weights: &Weights, name: &str| weights.get(name).copied().unwrap_or(0);

            for name in new.keys().chain(old.keys()) {
                prop_assert_eq!(after.weight(name), weight(new, name), "what was asked for");
            }

            // The fewest moves: half the sum of absolute differences, nobody counted.
            let mut all: Vec<&String> = old.keys().chain(new.keys()).collect();
            all.sort();
            all.dedup();
            let difference = |name: &&String| weight(old, name).abs_diff(weight(new, name));
            let free = |weights: &Weights| 10_000 - weights.values().sum::<u16>();
            let differences = all.iter().map(difference).sum::<u16>();
            let fewest = (differences + free(old).abs_diff(free(new))) / 2;
            let changed = owner_before.iter().zip(&owner_after).filter(|(a, b)| a != b).count();
            prop_assert_eq!(changed, usize::from(fewest));
            let told = moves(&before, &after);
            prop_assert_eq!(told.iter().map(|one| one.slots).sum::<u16>(), fewest);

            for (from, to) in owner_before.iter().zip(&owner_after).filter(|(a, b)| a != b) {
                // Only those who shrink give, only those who grow get.
                if let Some(from) = from {
                    prop_assert!(weight(new, from) < weight(old, from));
                }
                if let Some(to) = to {
                    prop_assert!(weight(new, to) > weight(old, to));
                }
            }
            for one in &told {
                let count = owner_before
                    .iter()
                    .zip(&owner_after)
                    .filter(|(a, b)| a.map(str::to_owned) == one.from && b.map(str::to_owned) == one.to)
                    .count();
                prop_assert_eq!(count, usize::from(one.slots));
            }

            // No move, no change; and what is stored comes back.
            prop_assert_eq!(&after.reallocate(new).expect("they fit"), &after);
            prop_assert_eq!(&Allocation::from_ranges(after.owners()).expect("disjoint"), &after);
            before = after;
            old = new;
        }
    }
}
