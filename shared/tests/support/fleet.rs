//! A large Definition: 10 000 Objectives × 8 Rules, as the targets have it.

use switchboard_shared::{
    definition::{
        Arm, ArmShare, Attribute, Balance, Check, Comparison, Definition, Endpoint, Experiment,
        FactsInto, Layer, LayerShare, ModelVersion, Objective, Outcome, Predicate, Rule, Shard,
        Source, Timeouts, Value, ValueKind,
    },
    slot::SlotRange,
};

/// Objectives.
pub(crate) const OBJECTIVES: u16 = 10_000;
/// Layers; a hundred Objectives share each.
const LAYERS: u16 = 100;

/// The token of an Objective.
pub(crate) fn token(number: u16) -> String {
    format!("RECOMMEND_SURFACE_{number:05}")
}

/// Each Objective asks six Rules of different kinds that a usual request does not pass. Then an even
/// one asks a seventh, an odd one has an Experiment of a Layer that many Objectives share and that
/// 99 % of the Units are outside of. Last comes an Experiment that owns every Slot. So eight Rules
/// are tried, with one keyed hash for an even Objective and two for an odd one.
pub(crate) fn definition() -> Definition {
    Definition {
        group: "bench".to_owned(),
        objectives: (0..OBJECTIVES).map(objective).collect(),
        layers: (0..LAYERS)
            .map(|number| Layer { name: layer(number), salt: format!("layer-salt-{number}") })
            .collect(),
        models: (1..=3)
            .map(|version| ModelVersion {
                name: "ranker".to_owned(),
                version: version.to_string(),
                shard: "ranker".to_owned(),
                served_name: "ranker".to_owned(),
                path: None,
            })
            .collect(),
        shards: vec![Shard {
            name: "ranker".to_owned(),
            endpoints: vec![Endpoint { address: "127.0.0.1:9001".to_owned(), weight: 1 }],
            balance: Balance::LeastInFlight,
        }],
        ..Definition::default()
    }
}

fn layer(number: u16) -> String {
    format!("layer-{number}")
}

fn objective(number: u16) -> Objective {
    Objective {
        token: token(number),
        context: vec![
            attribute("user_id", ValueKind::Text),
            attribute("country", ValueKind::Text),
            attribute("age", ValueKind::Number),
            attribute("beta", ValueKind::Boolean),
            attribute("app_version", ValueKind::Text),
        ],
        unit: None,
        default_arm: "stable".to_owned(),
        arms: vec![arm("stable", 1), arm("heavy", 2), arm("light", 3)],
        rules: rules(number),
        idempotent: true,
        timeouts: Timeouts::default(),
        body_bytes_max: None,
        shadow: Vec::new(),
    }
}

fn attribute(name: &str, kind: ValueKind) -> Attribute {
    let source = Source::Header(format!("x-{}", name.replace('_', "-")));
    Attribute { name: name.to_owned(), source, kind, default: None }
}

fn arm(name: &str, version: u8) -> Arm {
    Arm {
        name: name.to_owned(),
        model: format!("ranker@{version}"),
        facts: Vec::new(),
        facts_into: FactsInto::default(),
        timeouts: Timeouts::default(),
    }
}

fn rules(number: u16) -> Vec<Rule> {
    let test = |attribute: &str, check| Predicate::Test { attribute: attribute.to_owned(), check };
    let text = |text: &str| Value::Text(text.to_owned());
    let staff = (0..20).map(|one| Value::Text(format!("staff-{number}-{one}"))).collect();
    let named = |name: &str, when, then| Rule { name: name.to_owned(), when, then };
    let heavy = || Outcome::Arm("heavy".to_owned());
    vec![
        named("staff", Some(test("user_id", Check::In(staff))), heavy()),
        named("robots", Some(test("user_id", Check::Prefix("robot-".to_owned()))), heavy()),
        named(
            "abroad",
            Some(Predicate::All(vec![
                test("country", Check::In(vec![text("US"), text("CA"), text("MX")])),
                test("age", Check::Is(Comparison::Less, Value::Number(21.0))),
            ])),
            heavy(),
        ),
        named(
            "beta",
            Some(test("beta", Check::Is(Comparison::Equal, Value::Boolean(true)))),
            heavy(),
        ),
        named("old", Some(test("app_version", Check::Semver("<2.4.0".to_owned()))), heavy()),
        named(
            "not-here",
            Some(Predicate::Not(Box::new(test(
                "country",
                Check::In(vec![text("DE"), text("AT"), text("CH"), text("LI")]),
            )))),
            heavy(),
        ),
        if number.is_multiple_of(2) {
            named(
                "minors",
                Some(test("age", Check::Is(Comparison::Less, Value::Number(18.0)))),
                heavy(),
            )
        } else {
            named("layered", None, experiment(number, Some(layer(number % LAYERS))))
        },
        named("rollout", None, experiment(number, None)),
    ]
}

fn experiment(number: u16, layer: Option<String>) -> Outcome {
    let first = number / LAYERS * 100;
    let share = |arm: &str, first, last| ArmShare {
        arm: arm.to_owned(),
        slots: SlotRange::of(first, last).into_iter().collect(),
    };
    Outcome::Experiment(Experiment {
        unit: "user_id".to_owned(),
        salt: format!("{}-{number}", if layer.is_some() { "trial" } else { "rollout" }),
        layer: layer.map(|layer| LayerShare {
            layer,
            slots: SlotRange::of(first, first + 99).into_iter().collect(),
        }),
        split: vec![
            share("stable", 0, 4_499),
            share("heavy", 4_500, 4_999),
            share("stable", 5_000, 8_999),
            share("light", 9_000, 9_999),
        ],
    })
}
