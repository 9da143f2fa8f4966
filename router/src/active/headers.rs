//! Response headers that tell about a decision, written once per Snapshot instead of per request.
//!
//! Every name in a Snapshot is made of a few ASCII characters (`shared::snapshot::syntax`), so that
//! no value can break a header line.

use std::io::Write as _;

use switchboard_shared::snapshot::{
    ArchivedObjective, ArchivedOutcome, ArchivedPayload, ObjectiveIndex, SnapshotVersion,
};

use super::PrepareError;

/// The header text of each Arm and of each experiment.
#[derive(Debug)]
pub(super) struct DecisionHeaders {
    pub(super) arms: Texts,
    pub(super) rules: Texts,
}

impl DecisionHeaders {
    pub(super) fn render(
        payload: &ArchivedPayload,
        version: SnapshotVersion,
    ) -> Result<Self, PrepareError> {
        let arms = Texts::render(payload, |objective, texts| {
            for arm in objective.arms.iter() {
                let (token, arm_name) = (objective.token.as_str(), arm.name.as_str());
                let model = payload.model(arm).id.as_str();
                write!(
                    texts.text,
                    "x-switchboard-objective: {token}\r\nx-switchboard-arm: {arm_name}\r\n\
                     x-switchboard-model: {model}\r\nx-switchboard-snapshot: {version}\r\n"
                )
                .expect("writing into a Vec cannot fail");
                texts.end()?;
            }
            Ok(())
        })?;
        let rules = Texts::render(payload, |objective, texts| {
            for rule in objective.rules.iter() {
                if let ArchivedOutcome::Experiment(_) = &rule.then {
                    let name = rule.name.as_str();
                    write!(texts.text, "x-switchboard-experiment: {name}\r\n")
                        .expect("writing into a Vec cannot fail");
                }
                texts.end()?;
            }
            Ok(())
        })?;
        Ok(Self { arms, rules })
    }
}

/// Texts that belong to the parts of Objectives, all in one piece of memory.
#[derive(Debug)]
pub(super) struct Texts {
    text: Box<[u8]>,
    /// Where each text begins; then, where the last one ends.
    bounds: Box<[u32]>,
    /// Place in `bounds` of each Objective's first text.
    first: Box<[u32]>,
}

struct Builder {
    text: Vec<u8>,
    bounds: Vec<u32>,
}

impl Builder {
    fn end(&mut self) -> Result<(), PrepareError> {
        let bound = self.text.len().try_into().map_err(|_| PrepareError::TooLarge)?;
        self.bounds.push(bound);
        Ok(())
    }
}

impl Texts {
    fn render(
        payload: &ArchivedPayload,
        render: impl Fn(&ArchivedObjective, &mut Builder) -> Result<(), PrepareError>,
    ) -> Result<Self, PrepareError> {
        let mut texts = Builder { text: Vec::new(), bounds: vec![0] };
        let mut first = Vec::with_capacity(payload.objectives.len());
        for objective in payload.objectives.iter() {
            let place = texts.bounds.len() - 1;
            first.push(place.try_into().map_err(|_| PrepareError::TooLarge)?);
            render(objective, &mut texts)?;
        }
        Ok(Self { text: texts.text.into(), bounds: texts.bounds.into(), first: first.into() })
    }

    #[inline]
    pub(super) fn text(&self, objective: ObjectiveIndex, part: usize) -> &[u8] {
        let place = self.first[objective.get()] as usize + part;
        &self.text[self.bounds[place] as usize..self.bounds[place + 1] as usize]
    }
}
