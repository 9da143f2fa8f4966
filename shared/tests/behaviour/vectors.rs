//! The golden vectors of `shared/vectors/`: what other languages, and later versions of this one,
//! must reproduce.
//!
//! `cargo test -p switchboard-shared --test behaviour -- --ignored write_the_vectors` writes them
//! anew. A change of any value there moves Units or breaks running routers: it needs a new hash
//! version or a new Snapshot format, never just a new file.

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use switchboard_shared::{
    allocation::{Allocation, Weights, moves},
    definition::Definition,
    slot::{Slot, SlotKey, SlotRange, Unit},
    snapshot::{Expectations, PublicKey, SecretKey, Snapshot, SnapshotVersion, TrustedKeys, build},
};

use crate::sample;

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct SlotVectors {
    about: String,
    domain: String,
    salts: Vec<SaltVector>,
    not_units: Vec<NoUnit>,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct SaltVector {
    salt: String,
    /// Derived from it, in hex.
    key: String,
    units: Vec<SlotVector>,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct SlotVector {
    unit: UnitVector,
    /// The text that is hashed.
    canonical: String,
    slot: u16,
}

/// As a request carries it: a text, or a number of a JSON body.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
enum UnitVector {
    Text(String),
    Number(f64),
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct NoUnit {
    why: String,
    unit: UnitVector,
}

impl UnitVector {
    fn unit(&self) -> Option<Unit<'_>> {
        match self {
            Self::Text(text) => Unit::text(text),
            Self::Number(number) => Unit::number(*number),
        }
    }
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct AllocationVectors {
    about: String,
    sequences: Vec<Sequence>,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Sequence {
    name: String,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Step {
    weights: BTreeMap<String, u16>,
    /// First and last Slot of each range.
    owned: BTreeMap<String, Vec<(u16, u16)>>,
    /// From, to, how many; from the step before.
    moved: Vec<(Option<String>, Option<String>, u16)>,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct SnapshotVector {
    about: String,
    group: String,
    version: u64,
    created_unix_ms: u64,
    secret_key: String,
    public_key: String,
    key_id: String,
    digest: String,
    bytes: usize,
    /// What the sample decides for some requests.
    decisions: Vec<DecisionVector>,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct DecisionVector {
    objective: String,
    attributes: BTreeMap<String, String>,
    arm: String,
    rule: Option<String>,
    slot: Option<u16>,
    reason: String,
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors").join(name)
}

fn read<T: DeserializeOwned>(name: &str) -> T {
    let text = fs::read_to_string(path(name)).expect("the vectors are in the repository");
    serde_json::from_str(&text).expect("as `write_the_vectors` wrote it")
}

fn write(name: &str, value: &impl Serialize) {
    let mut text = serde_json::to_string_pretty(value).expect("plain data");
    text.push('\n');
    fs::write(path(name), text).expect("a writable checkout");
}

fn slot_vectors() -> SlotVectors {
    let long = "salt-".repeat(50);
    let salts = ["heavy-trial-2026-11", "a", " ", "0", "größe-量-🎚", "exp-1", "exp-2", &long];
    let long = "session/".repeat(50);
    let texts =
        ["u1", "u2", "0", " u1", "u1 ", "\u{200b}", "Ωmega-用户-🦀", "user@example.com", &long];
    let numbers =
        [0.0, 1.0, -7.0, 1e3, 1_234_567_890.0, 9_007_199_254_740_992.0, -9_007_199_254_740_992.0];
    let units: Vec<UnitVector> = texts
        .iter()
        .map(|text| UnitVector::Text((*text).to_owned()))
        .chain(numbers.map(UnitVector::Number))
        .chain((0..20).map(|number| UnitVector::Text(format!("user-{number}"))))
        .collect();
    let vector = |salt: &&str| {
        let key = SlotKey::derive(salt);
        let one = |unit: &UnitVector| {
            let hashed = unit.unit().expect("all of these are Units");
            SlotVector {
                canonical: hashed.as_str().to_owned(),
                slot: Slot::of(&key, &hashed).get(),
                unit: unit.clone(),
            }
        };
        SaltVector {
            salt: (*salt).to_owned(),
            key: blake3::Hash::from_bytes(*key.as_bytes()).to_hex().to_string(),
            units: units.iter().map(one).collect(),
        }
    };
    let no_unit = |why: &str, unit| NoUnit { why: why.to_owned(), unit };
    let no_text = |why: &str, text: &str| no_unit(why, UnitVector::Text(text.to_owned()));
    SlotVectors {
        about: "Where Units fall; docs/bucketing.md tells how. Frozen.".to_owned(),
        domain: SlotKey::DOMAIN.to_owned(),
        salts: salts.iter().map(vector).collect(),
        not_units: vec![
            no_text("empty", ""),
            no_text("blank", "  "),
            no_text("blank: tab, CR, LF", "\t\r\n"),
            no_text("blank: no-break space, ideographic space", "\u{a0}\u{3000}"),
            no_text("longer than 8192 bytes", &"x".repeat(8_193)),
            no_unit("not an integer", UnitVector::Number(0.5)),
            no_unit("above 2^53", UnitVector::Number(9_007_199_254_740_994.0)),
            no_unit("below -2^53", UnitVector::Number(-1e300)),
        ],
    }
}

/// Owners and their weights.
type Pairs<'a> = &'a [(&'a str, u16)];

fn allocation_vectors() -> AllocationVectors {
    let chains: [(&str, &[Pairs<'_>]); 7] = [
        ("coverage 20 % to 100 %", &[&[("a", 1_000), ("b", 1_000)], &[("a", 5_000), ("b", 5_000)]]),
        ("90/10 to 80/20", &[&[("a", 9_000), ("b", 1_000)], &[("a", 8_000), ("b", 2_000)]]),
        (
            "a third arm of weight 0 grows to 10 %",
            &[
                &[("a", 5_000), ("b", 5_000), ("c", 0)],
                &[("a", 4_500), ("b", 4_500), ("c", 1_000)],
                &[("a", 10_000)],
            ],
        ),
        (
            "released before never owned",
            &[&[("a", 100), ("b", 100)], &[("a", 90), ("b", 100), ("c", 30)], &[("c", 35)], &[]],
        ),
        (
            "released before never owned, though these are lower",
            &[
                &[("a", 10), ("b", 10)],
                &[("b", 10)],
                &[("b", 6), ("c", 7)],
                &[("b", 5), ("c", 7), ("d", 2)],
            ],
        ),
        (
            "names in bytewise order",
            &[&[("m", 10)], &[("a", 3), ("Z", 3), ("é", 3), ("a-", 1)], &[("é", 9_999), ("z", 1)]],
        ),
        (
            "a ramp up and down again",
            &[
                &[("control", 5), ("trial", 5)],
                &[("control", 50), ("trial", 50)],
                &[("control", 2_500), ("trial", 500)],
                &[("control", 2_500), ("trial", 2_500), ("other", 5_000)],
                &[("control", 4_999), ("trial", 1), ("other", 5_000)],
                &[("control", 3_333), ("trial", 3_333), ("other", 3_334)],
            ],
        ),
    ];
    let plain = |ranges: &[SlotRange]| {
        ranges.iter().map(|range| (range.first().get(), range.last().get())).collect()
    };
    let sequence = |(name, chain): (&str, &[Pairs<'_>])| {
        let mut before = Allocation::EMPTY;
        let mut step = |weights: &Pairs<'_>| {
            let weights: Weights =
                weights.iter().map(|(owner, weight)| ((*owner).to_owned(), *weight)).collect();
            let after = before.reallocate(&weights).expect("they fit");
            let moved = moves(&before, &after);
            let owned =
                after.owners().map(|(owner, ranges)| (owner.to_owned(), plain(ranges))).collect();
            before = after;
            let moved = moved.into_iter().map(|one| (one.from, one.to, one.slots)).collect();
            Step { weights, owned, moved }
        };
        Sequence { name: name.to_owned(), steps: chain.iter().map(&mut step).collect() }
    };
    AllocationVectors {
        about: "Who owns which slots after each change of weights, starting from nothing owned; \
                docs/bucketing.md tells how. Frozen."
            .to_owned(),
        sequences: chains.into_iter().map(sequence).collect(),
    }
}

const CREATED_UNIX_MS: u64 = 1_796_000_000_000;

fn snapshot_definition() -> Definition {
    sample::definition()
}

fn snapshot_file() -> Vec<u8> {
    let version = SnapshotVersion::new(42).expect("not zero");
    build(&snapshot_definition(), version, CREATED_UNIX_MS, &sample::key()).expect("good")
}

fn snapshot_vector(file: &[u8]) -> SnapshotVector {
    let snapshot = open(file);
    let requests: [&[(&str, &str)]; 6] = [
        &[("user_id", "u1")],
        &[("user_id", "user-7"), ("age", "18"), ("app_version", "1.9.9")],
        &[("user_id", "user-0"), ("country", "DE")],
        &[("user_id", "user-1"), ("country", "AT")],
        &[("user_id", "user-2"), ("country", "DE"), ("app_version", "2.0.0")],
        &[("country", "DE")],
    ];
    SnapshotVector {
        about: "What sample.snapshot holds, who signed it, and what it decides.".to_owned(),
        group: "test".to_owned(),
        version: snapshot.version().get(),
        created_unix_ms: snapshot.created_unix_ms(),
        secret_key: sample::key().to_line().trim().to_owned(),
        public_key: sample::key().public().to_string(),
        key_id: snapshot.key_id().to_string(),
        digest: snapshot.digest().to_string(),
        bytes: file.len(),
        decisions: requests.iter().map(|request| decision(&snapshot, request)).collect(),
    }
}

fn open(file: &[u8]) -> Snapshot {
    let public: PublicKey = sample::key().public();
    let trusted = TrustedKeys::new([public]).expect("one good key");
    Snapshot::open(file, &trusted, Expectations::of_group("test")).expect("a good Snapshot")
}

fn decision(snapshot: &Snapshot, request: &[(&str, &str)]) -> DecisionVector {
    use switchboard_shared::{context::Context, decide::decide};

    let token = "RECOMMEND_HOME_FEED";
    let objective = snapshot.objective(token.as_bytes()).expect("of the sample");
    let mut context = Context::with_defaults(objective);
    for (name, text) in request {
        let (index, attribute) =
            objective.attributes().find(|(_, one)| one.name == *name).expect("declared");
        context.set(index, attribute.parse_text(text).expect("of its type"));
    }
    let decision = decide(snapshot.payload(), objective, &context);
    DecisionVector {
        objective: token.to_owned(),
        attributes: request
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect(),
        arm: objective.arm(decision.arm).name.as_str().to_owned(),
        rule: decision.rule.map(|rule| objective.rule(rule).name.as_str().to_owned()),
        slot: decision.slot.map(Slot::get),
        reason: decision.reason.label().to_owned(),
    }
}

#[test]
fn slots_are_the_golden_ones() {
    let golden: SlotVectors = read("slots.json");
    assert_eq!(golden, slot_vectors());
    for vector in &golden.not_units {
        assert!(vector.unit.unit().is_none(), "{}", vector.why);
    }
}

#[test]
fn allocations_are_the_golden_ones() {
    assert_eq!(read::<AllocationVectors>("allocations.json"), allocation_vectors());
}

/// The bytes of the format: a change here is a new format, or routers misread.
#[test]
fn a_snapshot_file_of_this_format_still_opens_and_is_built_to_the_same_bytes() {
    let golden: SnapshotVector = read("snapshot.json");
    let file = fs::read(path("sample.snapshot")).expect("the vectors are in the repository");
    assert_eq!(golden, snapshot_vector(&file));
    assert!(file == snapshot_file(), "the builder writes other bytes than the golden file has");
    let secret: SecretKey = golden.secret_key.parse().expect("a key line");
    assert_eq!(secret.public().to_string(), golden.public_key);
}

#[test]
#[ignore = "writes the golden files; see the top of this file"]
fn write_the_vectors() {
    write("slots.json", &slot_vectors());
    write("allocations.json", &allocation_vectors());
    let file = snapshot_file();
    write("snapshot.json", &snapshot_vector(&file));
    fs::write(path("sample.snapshot"), file).expect("a writable checkout");
}
