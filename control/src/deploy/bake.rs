//! After an activation: what routers say of each Arm, held against limits for a while; a breach takes the version back.
//!
//! Routers tell sums once a second. What counts is what came on top since the activation, over all routers together;
//! a router that starts anew begins at zero.

use std::{collections::BTreeMap, pin::Pin, time::Duration};

use tokio::time::{Instant, sleep};

use super::{DeployError, Deployer, Only, Wait};
use crate::{broadcaster::RouterStatus, registry::Evidence};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Who takes a version back, in the audit log.
const ACTOR: &str = "watch";

/// What an Arm may not exceed once a version is active.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BakeLimits {
    /// How long a version is watched; zero: not at all.
    pub span: Duration,
    /// Requests of an Arm since the activation below which nothing is concluded.
    pub requests_min: u64,
    /// Share of an Arm's requests that fail or are answered with 5xx.
    pub errors_max: f64,
    /// Share of the requests decided for an Arm that fall out to the default Arm.
    pub fallouts_max: f64,
}

impl Default for BakeLimits {
    fn default() -> Self {
        Self { span: Duration::ZERO, requests_min: 100, errors_max: 0.05, fallouts_max: 0.2 }
    }
}

/// Sums of one Arm.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Sums {
    requests: u64,
    errors: u64,
    fallouts: u64,
}

/// Sums by router's socket and by `OBJECTIVE/arm`.
type Seen = BTreeMap<(String, String), Sums>;

/// What was added since a beginning.
struct Watched {
    before: Seen,
    /// Of routers' lives that are over.
    earlier: BTreeMap<String, Sums>,
    last: Seen,
}

/// Watches the version that has just become active, until its time is over, something else is active, or it is taken
/// back. Boxed, for a change begins a watch and a watch may begin a change.
pub(super) fn watch(
    deployer: Deployer,
    version: u64,
    limits: BakeLimits,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(watch_until_over(deployer, version, limits))
}

async fn watch_until_over(deployer: Deployer, version: u64, limits: BakeLimits) {
    let mut watched = Watched::begin(&deployer.broadcaster().status());
    let end = Instant::now() + limits.span;
    while Instant::now() < end {
        sleep(LOOK_EVERY).await;
        if deployer.active().is_none_or(|active| active.record.version != version) {
            return;
        }
        watched.look(&deployer.broadcaster().status());
        if let Some(breach) = watched.breach(limits) {
            tracing::warn!(version, breach, "breach");
            take_back(&deployer, version, &breach).await;
            return;
        }
    }
    let detail = watched.told(limits.span);
    tracing::info!(version, detail, "watched");
    note(&deployer, version, Ok(detail)).await;
}

async fn take_back(deployer: &Deployer, version: u64, breach: &str) {
    note(deployer, version, Err(breach.to_owned())).await;
    let actor = ACTOR.to_owned();
    match deployer.roll_back(None, Only::IfActive(version), actor, Wait::ForEnd).await {
        Ok(report) => tracing::warn!(version, by = report.version, "taken back"),
        Err(DeployError::NoLongerActive { .. }) => {
            tracing::info!(version, "another version is active by now");
        }
        Err(error) => {
            tracing::error!(version, %error, "cannot be taken back");
            note(deployer, version, Err(format!("it cannot be taken back: {error}"))).await;
        }
    }
}

async fn note(deployer: &Deployer, version: u64, seen: Result<String, String>) {
    let evidence = Evidence::now("watch".to_owned(), seen);
    if let Err(error) = deployer.registry().add_evidence(version, &[evidence]).await {
        tracing::error!(version, %error, "cannot store what was watched");
    }
}

fn seen(routers: &[RouterStatus]) -> Seen {
    let mut seen = Seen::new();
    for router in routers {
        for (name, value) in &router.counters {
            let Some((what, arm)) = name.strip_suffix('}').and_then(|name| name.split_once('{'))
            else {
                continue;
            };
            let place = |sums: &mut Sums| match what {
                "arm_requests" => sums.requests = *value,
                "arm_errors" => sums.errors = *value,
                "arm_fallouts" => sums.fallouts = *value,
                _ => {}
            };
            if what.starts_with("arm_") {
                place(seen.entry((router.socket.clone(), arm.to_owned())).or_default());
            }
        }
    }
    seen
}

impl Sums {
    fn since(self, before: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(before.requests),
            errors: self.errors.saturating_sub(before.errors),
            fallouts: self.fallouts.saturating_sub(before.fallouts),
        }
    }

    fn add(&mut self, more: Self) {
        self.requests += more.requests;
        self.errors += more.errors;
        self.fallouts += more.fallouts;
    }

    /// A sum went back: this is another life of its router.
    const fn is_before(self, later: Self) -> bool {
        self.requests <= later.requests && self.fallouts <= later.fallouts
    }
}

impl Watched {
    fn begin(routers: &[RouterStatus]) -> Self {
        let before = seen(routers);
        Self { last: before.clone(), before, earlier: BTreeMap::new() }
    }

    fn look(&mut self, routers: &[RouterStatus]) {
        let now = seen(routers);
        for (key, last) in &self.last {
            let is_new_life = now.get(key).is_some_and(|sums| !last.is_before(*sums));
            if is_new_life {
                let before = self.before.remove(key).unwrap_or_default();
                self.earlier.entry(key.1.clone()).or_default().add(last.since(before));
            }
        }
        // A router that went away keeps what it told last.
        self.last.extend(now);
    }

    /// Since the beginning, by Arm, over all routers.
    fn sums(&self) -> BTreeMap<String, Sums> {
        let mut sums = self.earlier.clone();
        for (key, last) in &self.last {
            let before = self.before.get(key).copied().unwrap_or_default();
            sums.entry(key.1.clone()).or_default().add(last.since(before));
        }
        sums
    }

    /// The first Arm that exceeds a limit, and how.
    #[expect(clippy::cast_precision_loss, reason = "shares of counts far below 2^53")]
    fn breach(&self, limits: BakeLimits) -> Option<String> {
        self.sums().into_iter().find_map(|(arm, sums)| {
            let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
            let decided = sums.requests + sums.fallouts;
            if sums.requests >= limits.requests_min
                && share(sums.errors, sums.requests) > limits.errors_max
            {
                return Some(format!(
                    "{arm}: {} of {} requests failed since the activation, more than {:.1} %",
                    sums.errors,
                    sums.requests,
                    limits.errors_max * 100.0
                ));
            }
            (decided >= limits.requests_min
                && share(sums.fallouts, decided) > limits.fallouts_max)
                .then(|| {
                    format!(
                        "{arm}: {} of {decided} requests fell out since the activation, more than {:.1} %",
                        sums.fallouts,
                        limits.fallouts_max * 100.0
                    )
                })
        })
    }

    fn told(&self, span: Duration) -> String {
        let mut all = Sums::default();
        self.sums().into_values().for_each(|sums| all.add(sums));
        let Sums { requests, errors, fallouts } = all;
        format!("{requests} requests in {span:?}: {errors} failed, {fallouts} fell out")
    }
}

#[cfg(test)]
mod tests;
