//! What one worker counts.

use switchboard_shared::decide::Reason;

use super::block::counter_block;
use super::cell::{By, Counter, Gauge};
use super::histogram::Histogram;
use super::labels::{BadRequest, Ejection, NotCopied, ResponseClass, UpstreamFailure};

counter_block! {
    /// What one worker counts. Only that worker writes it.
    pub struct WorkerCounters {
        /// Requests whose head was read whole.
        requests: Counter = "switchboard_requests_total",
        /// Requests that are being answered.
        requests_active: Gauge = "switchboard_requests_active",
        /// Responses whose head was sent to a client, the router's own among them.
        responses: By<ResponseClass, { ResponseClass::COUNT }> = "switchboard_responses_total",
        /// Requests whose client left before the answer was whole.
        client_closed: Counter = "switchboard_client_closed_total",
        /// Requests that were refused as malformed or over a limit.
        bad_requests: By<BadRequest, { BadRequest::COUNT }> = "switchboard_bad_requests_total",
        /// Requests that named no Objective of the Snapshot.
        unknown_objective: Counter = "switchboard_unknown_objective_total",
        /// Requests that came before the first Snapshot.
        without_snapshot: Counter = "switchboard_without_snapshot_total",
        /// Decisions, by how the Arm that answered was reached.
        decisions: By<Reason, { Reason::ALL.len() }> = "switchboard_decisions_total",
        /// Experiments that were skipped because the request lacked their Unit.
        unit_missing: Counter = "switchboard_unit_missing_total",
        /// Attempts at an endpoint that failed.
        upstream_failures: By<UpstreamFailure, { UpstreamFailure::COUNT }> = "switchboard_upstream_failures_total",
        /// Attempts after the first one.
        retries: Counter = "switchboard_retries_total",
        /// Retries that the retry budget refused.
        retries_refused: Counter = "switchboard_retries_refused_total",
        /// Endpoints that were ejected, as each worker for itself does it.
        ejections: By<Ejection, { Ejection::COUNT }> = "switchboard_ejections_total",
        /// Endpoints that are ejected, summed over the workers.
        endpoints_ejected: Gauge = "switchboard_endpoints_ejected",
        /// Answers by which an endpoint asked for a rest: 429 or 503 with Retry-After.
        rests: Counter = "switchboard_endpoint_rests_total",
        /// Choices among endpoints that work badly, because too few of their Shard work well.
        panics: Counter = "switchboard_shard_panics_total",
        /// Attempts that went over a pooled connection.
        pool_hits: Counter = "switchboard_upstream_pool_hits_total",
        /// Attempts that opened a connection.
        pool_misses: Counter = "switchboard_upstream_pool_misses_total",
        /// Connections to endpoints that are open.
        upstream_connections_active: Gauge = "switchboard_upstream_connections_active",
        /// Client connections that were accepted.
        connections_accepted: Counter = "switchboard_connections_accepted_total",
        /// Failed accepts, such as for lack of file descriptors.
        accept_failures: Counter = "switchboard_accept_failures_total",
        /// Client connections that are open.
        connections_active: Gauge = "switchboard_connections_active",
        /// Bytes of clients' requests: heads, and bodies without framing.
        bytes_received: Counter = "switchboard_client_received_bytes_total",
        /// Bytes written to clients.
        bytes_sent: Counter = "switchboard_client_sent_bytes_total",
        /// Shadow records that were drawn: one per request and target.
        shadow_sampled: Counter = "switchboard_shadow_sampled_total",
        /// Shadow records that were drawn and not handed over to the shadow core.
        shadow_not_copied: By<NotCopied, { NotCopied::COUNT }> = "switchboard_shadow_not_copied_total",
        /// Exposures that were met.
        exposures: Counter = "switchboard_exposures_total",
        /// Exposures that were met and not handed over to the shadow core.
        exposures_not_copied: By<NotCopied, { NotCopied::COUNT }> = "switchboard_exposures_not_copied_total",
        /// What the router adds: a request's whole time less its endpoint's.
        overhead: Histogram = "switchboard_overhead_seconds",
        /// Requests that left their Arm for the default one, by reason.
        fallouts: By<Reason, { Reason::ALL.len() }> = "switchboard_fallouts_total",
        /// Waits for Facts that were looked up.
        facts_wait: Histogram = "switchboard_facts_wait_seconds",
        /// How long after its budget was spent a wait for Facts ended, of those that ended after it.
        facts_overrun: Histogram = "switchboard_facts_overrun_seconds",
        /// Connections to the cache that can be asked.
        facts_connected: Gauge = "switchboard_facts_connected",
        /// Connections to the cache that were greeted.
        facts_connects: Counter = "switchboard_facts_connects_total",
        /// Attempts to connect to the cache that failed.
        facts_connect_failures: Counter = "switchboard_facts_connect_failures_total",
        /// Connections to the cache that were given up because answers came late or not at all.
        facts_breaker_opened: Counter = "switchboard_facts_breaker_opened_total",
        /// Connections to the cache that were given up because it did not speak its protocol.
        facts_protocol_errors: Counter = "switchboard_facts_protocol_errors_total",
        /// Replies of the cache that came when nobody waited for them any more.
        facts_replies_unheard: Counter = "switchboard_facts_replies_unheard_total",
        /// Lookups of which a second server was asked, because the first one was slow.
        facts_hedges: Counter = "switchboard_facts_hedges_total",
        /// Commands that the second server answered before the first one.
        facts_hedges_won: Counter = "switchboard_facts_hedges_won_total",
        /// Lookups of which no second server was asked, because too many had been already.
        facts_hedges_refused: Counter = "switchboard_facts_hedges_refused_total",
        /// Commands that another node of the cluster had to answer.
        facts_redirects: Counter = "switchboard_facts_redirects_total",
        /// How often the cluster told which node has which slots.
        facts_cluster_looks: Counter = "switchboard_facts_cluster_looks_total",
        /// Facts that the near-cache knew.
        facts_near_hits: Counter = "switchboard_facts_near_hits_total",
        /// Facts that were asked for already, for another request.
        facts_near_shared: Counter = "switchboard_facts_near_shared_total",
        /// Bytes that the near-cache holds.
        facts_near_bytes: Gauge = "switchboard_facts_near_bytes",
        /// From a request's last byte to an endpoint until its response's first byte.
        upstream: Histogram = "switchboard_upstream_first_byte_seconds",
    }
}
