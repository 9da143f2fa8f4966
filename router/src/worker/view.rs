//! What a core evaluates: an Activation, with its Shards bound to the core's own endpoints.

use std::rc::Rc;
use std::sync::Arc;

use switchboard_shared::snapshot::{ArchivedArm, ArchivedObjective, ObjectiveIndex, ShardIndex};

use crate::active::Active;
use crate::upstream::pool::{Endpoints, Shard};

/// One Activation on one core. A request holds it to its end: one request, one version.
pub struct View {
    /// The Snapshot and what was derived from it.
    pub active: Arc<Active>,
    for_copies: Arc<KeptActive>,
    shards: Vec<Rc<Shard>>,
}

/// An Activation as copies of requests keep it alive: behind a count that no other worker touches.
pub struct KeptActive(pub Arc<Active>);

impl View {
    /// Binds the Snapshot's Shards to this core's endpoints.
    pub fn new(active: Arc<Active>, endpoints: &Endpoints) -> Self {
        let payload = active.snapshot.payload();
        let shards = payload.shards.iter().zip(0..).filter_map(|(shard, place)| {
            let addresses = active.endpoints(ShardIndex::new(place)?);
            let weights = shard.endpoints.iter().map(|endpoint| endpoint.weight.to_native());
            Some(endpoints.shard(addresses.iter().zip(weights)))
        });
        let shards = shards.collect();
        Self { for_copies: Arc::new(KeptActive(Arc::clone(&active))), active, shards }
    }

    /// What a copy of a request keeps until its records are made.
    pub fn for_copies(&self) -> Arc<KeptActive> {
        Arc::clone(&self.for_copies)
    }

    /// An Objective of the Snapshot.
    pub fn objective(&self, objective: ObjectiveIndex) -> Option<&ArchivedObjective> {
        self.active.snapshot.payload().objective(objective)
    }

    /// Where an Arm's model is served.
    pub fn shard(&self, arm: &ArchivedArm) -> Option<&Rc<Shard>> {
        let shard = self.active.snapshot.payload().model(arm).shard;
        self.shards.get(shard.get())
    }
}
