//! What experiments promise to whoever analyses them. (EX-01, EX-03, EX-04)

use switchboard_shared::{
    context::{Context, Value},
    decide::{Decision, Reason, decide},
    definition::{ArmShare, Definition, Experiment, Outcome, Rule, ValueKind},
    slot::{Slot, SlotKey, Unit},
};

use crate::sample;

/// 20 000 each of sequential integers, UUIDs and e-mail-like ids.
fn ids() -> impl Iterator<Item = String> {
    (0..60_000_u64).map(|number| match number % 3 {
        0 => number.to_string(),
        1 => {
            let hash = blake3::hash(&number.to_le_bytes()).to_hex();
            let (a, b, c, d, e) =
                (&hash[..8], &hash[8..12], &hash[12..16], &hash[16..20], &hash[20..32]);
            format!("{a}-{b}-{c}-{d}-{e}")
        }
        _ => format!("user.{number}@example.com"),
    })
}

fn slot(key: &SlotKey, id: &str) -> u16 {
    Slot::of(key, &Unit::text(id).expect("not blank")).get()
}

/// EX-01: twenty experiments named alike, every pair compared over ten bands of Slots each.
///
/// With 81 degrees of freedom, chi-square above 126.1 has p < 0.001. Of 190 pairs 0.19 are expected
/// there by chance; four or more have a chance of about one in 25 000. The ids are fixed, so this
/// never flickers.
#[test]
fn no_two_experiments_are_correlated() {
    let keys: Vec<_> = (1..=20).map(|number| SlotKey::derive(&format!("exp-{number}"))).collect();
    let bands: Vec<Vec<usize>> = ids()
        .map(|id| keys.iter().map(|key| usize::from(slot(key, &id) / 1_000)).collect())
        .collect();
    let mut extreme = 0;
    for one in 0..keys.len() {
        for other in 0..one {
            let mut table = [[0_u32; 10]; 10];
            for row in &bands {
                table[row[one]][row[other]] += 1;
            }
            extreme += usize::from(chi_square(&table) > 126.1);
        }
    }
    assert!(extreme < 4, "{extreme} of 190 pairs look dependent");
}

/// Of independence, over the table's margins.
fn chi_square(table: &[[u32; 10]; 10]) -> f64 {
    let rows: Vec<f64> = table.iter().map(|row| f64::from(row.iter().sum::<u32>())).collect();
    let columns: Vec<f64> =
        (0..10).map(|column| f64::from(table.iter().map(|row| row[column]).sum::<u32>())).collect();
    let total: f64 = rows.iter().sum();
    let mut sum = 0.0;
    for (row, cells) in rows.iter().zip(table) {
        for (column, cell) in columns.iter().zip(cells) {
            let expected = row * column / total;
            sum += (f64::from(*cell) - expected).powi(2) / expected;
        }
    }
    sum
}

/// EX-01: a 50/50 split inside a Layer's 10 %, of 200 000 ids, within four sigma of one half.
#[test]
fn the_split_inside_a_layers_ten_percent_is_even() {
    let mut definition = experiment(&[("stable", 0, 4_999), ("heavy", 5_000, 9_999)]);
    let Outcome::Experiment(experiment) = &mut definition.objectives[0].rules[0].then else {
        unreachable!("the sample has one experiment");
    };
    experiment.layer.as_mut().expect("in a Layer").slots = sample::slots(3_000, 3_999);
    let counts = counts(&definition, 200_000);
    let inside = counts[0] + counts[1];
    assert_within_four_sigma(inside, 200_000, 0.1);
    assert_within_four_sigma(counts[0], inside, 0.5);
}

/// EX-03: shares of 200 000 ids against the weights, the smallest one included.
#[test]
fn seen_shares_match_the_weights() {
    let mut definition = experiment(&[("stable", 0, 8_999), ("heavy", 9_000, 9_899)]);
    let Outcome::Experiment(experiment) = &mut definition.objectives[0].rules[0].then else {
        unreachable!("the sample has one experiment");
    };
    experiment.layer = None;
    let counts = counts(&definition, 200_000);
    assert_within_four_sigma(counts[0], 200_000, 0.90);
    assert_within_four_sigma(counts[1], 200_000, 0.09);
    assert_within_four_sigma(counts[2], 200_000, 0.01);
}

fn assert_within_four_sigma(seen: u32, of: u32, share: f64) {
    let mean = f64::from(of) * share;
    let sigma = (mean * (1.0 - share)).sqrt();
    let off = (f64::from(seen) - mean).abs();
    assert!(off < 4.0 * sigma, "{seen} of {of}, expected {mean} ± {sigma}");
}

/// EX-03: every boundary to the Slot: first, last, and both sides of each edge.
#[test]
fn a_slot_at_a_boundary_belongs_to_exactly_one_arm() {
    let definition = experiment(&[("stable", 0, 0), ("heavy", 1, 4_999), ("stable", 5_001, 9_998)]);
    let snapshot = sample::open(&definition);
    let objective = snapshot.objective(b"RECOMMEND_HOME_FEED").expect("it was built");
    let experiment = objective.experiment(&objective.rules[0]).expect("the only rule is one");
    for slot in Slot::all() {
        let expected = match slot.get() {
            0 | 5_001..=9_998 => Some("stable"),
            1..=4_999 => Some("heavy"),
            _ => None,
        };
        let found = experiment.arm_of(slot).map(|arm| objective.arm(arm).name.as_str());
        assert_eq!(found, expected, "slot {slot}");
    }
}

/// EX-04: absent, empty and blank ids are in no experiment, and counted as such.
#[test]
fn a_request_without_a_unit_is_never_bucketed() {
    let definition = experiment(&[("heavy", 0, 9_999)]);
    for user in [None, Some(""), Some("  "), Some("\t\u{a0}")] {
        let decision = decision(&definition, user.map(Value::Text));
        assert_eq!(decision.reason, Reason::NoUnit, "{user:?}");
        assert!(decision.unit_missing);
        assert_eq!((decision.rule, decision.slot), (None, None));
    }
}

/// EX-04: `0` and `"0"` are good Units; a number has one text; what is no integer is no Unit.
#[test]
fn a_number_and_its_decimal_text_are_one_unit() {
    let texts = experiment(&[("heavy", 0, 9_999)]);
    let mut numbers = texts.clone();
    numbers.objectives[0].context[0].kind = ValueKind::Number;
    for (number, text) in [(0.0, "0"), (-0.0, "0"), (1e3, "1000"), (-7.0, "-7"), (1.0, "1")] {
        let by_number = decision(&numbers, Some(Value::Number(number)));
        let by_text = decision(&texts, Some(Value::Text(text)));
        assert_eq!(by_number.slot, by_text.slot, "{number}");
        assert!(by_text.slot.is_some());
    }
    for number in [0.5, 9_007_199_254_740_994.0] {
        assert_eq!(decision(&numbers, Some(Value::Number(number))).reason, Reason::NoUnit);
    }
}

/// EX-04: a later Rule still decides, and the missing Unit is still told.
#[test]
fn a_rule_after_a_skipped_experiment_decides() {
    let mut definition = experiment(&[("heavy", 0, 9_999)]);
    let everyone =
        Rule { name: "everyone".to_owned(), when: None, then: Outcome::Arm("heavy".to_owned()) };
    definition.objectives[0].rules.push(everyone);
    let decision = decision(&definition, None);
    assert_eq!(decision.reason, Reason::Rule);
    assert!(decision.unit_missing);
}

/// EX-01: the Layer excludes: no Unit is in two of its experiments, and none is in neither, as
/// they share all of it between them.
#[test]
fn experiments_of_one_layer_never_share_a_unit() {
    let mut definition = experiment(&[("heavy", 0, 9_999)]);
    let one = definition.objectives[0].clone();
    let mut other = one.clone();
    other.token = "OTHER".to_owned();
    let Outcome::Experiment(experiment) = &mut other.rules[0].then else {
        unreachable!("an experiment")
    };
    experiment.salt = "other".to_owned();
    experiment.layer.as_mut().expect("in a Layer").slots = sample::slots(8_000, 9_999);
    definition.objectives = vec![one, other];

    let snapshot = sample::open(&definition);
    for id in ids().take(3_000) {
        let inside = |token: &[u8]| {
            let objective = snapshot.objective(token).expect("it was built");
            let mut context = Context::with_defaults(objective);
            sample::set(&mut context, objective, "user_id", Value::Text(&id));
            decide(snapshot.payload(), objective, &context).reason == Reason::Experiment
        };
        assert!(inside(b"RECOMMEND_HOME_FEED") != inside(b"OTHER"), "{id}");
    }
}

/// The sample with its experiment as the only Rule, for everyone in Slots 0..=7999 of the Layer.
fn experiment(split: &[(&str, u16, u16)]) -> Definition {
    let mut definition = sample::definition();
    let rules = &mut definition.objectives[0].rules;
    rules.drain(..2);
    rules[0].when = None;
    let Outcome::Experiment(Experiment { split: shares, .. }) = &mut rules[0].then else {
        unreachable!("the last rule of the sample is an experiment");
    };
    *shares = split
        .iter()
        .map(|(arm, first, last)| ArmShare {
            arm: (*arm).to_owned(),
            slots: sample::slots(*first, *last),
        })
        .collect();
    definition
}

fn decision(definition: &Definition, user: Option<Value<'_>>) -> Decision {
    let mut definition = definition.clone();
    let Outcome::Experiment(experiment) = &mut definition.objectives[0].rules[0].then else {
        unreachable!("the first rule is the experiment");
    };
    experiment.layer = None;
    let snapshot = sample::open(&definition);
    let objective = snapshot.objective(b"RECOMMEND_HOME_FEED").expect("it was built");
    let mut context = Context::with_defaults(objective);
    if let Some(user) = user {
        sample::set(&mut context, objective, "user_id", user);
    }
    decide(snapshot.payload(), objective, &context)
}

/// How many of the ids `0..count` get Arm 0, Arm 1, and no Experiment.
fn counts(definition: &Definition, count: u32) -> [u32; 3] {
    let snapshot = sample::open(definition);
    let objective = snapshot.objective(b"RECOMMEND_HOME_FEED").expect("it was built");
    let mut counts = [0; 3];
    for number in 0..count {
        let id = number.to_string();
        let mut context = Context::with_defaults(objective);
        sample::set(&mut context, objective, "user_id", Value::Text(&id));
        let decision = decide(snapshot.payload(), objective, &context);
        match decision.reason {
            Reason::Experiment => counts[decision.arm.get()] += 1,
            _ => counts[2] += 1,
        }
    }
    counts
}
