//! In steady state a request allocates nothing: a counting allocator holds that line. (A body that is read
//! whole and does not fit a pooled buffer is the exception: it grows a buffer of its own.)

#![expect(clippy::disallowed_methods, reason = "tests run on ordinary threads")]
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(dead_code, reason = "shared with the tests of serving, which use all of it")]

#[path = "../serving/cache.rs"]
mod cache;
#[path = "../serving/client.rs"]
mod client;
#[path = "../serving/router.rs"]
mod router;
#[path = "../serving/upstream.rs"]
mod upstream;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cache::{Cache, bulk, redis};
use client::{Client, post};
use router::{Router, definition, everything, with_facts};
use switchboard_shared::definition::FactsInto;
use upstream::Upstream;

/// Counts what threads named `worker-…` allocate.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// What one test's worker allocates at its start is not the other's.
#[expect(clippy::disallowed_types, reason = "tests run on ordinary threads")]
static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());

thread_local! {
    static IS_WORKER: Cell<Option<bool>> = const { Cell::new(None) };
}

fn count() {
    let is_worker = IS_WORKER.try_with(|is_worker| {
        // Asking for the name may itself allocate: the answer is kept, and `false` until it is there.
        is_worker.get().unwrap_or_else(|| {
            is_worker.set(Some(false));
            let named =
                std::thread::current().name().is_some_and(|name| name.starts_with("worker-"));
            is_worker.set(Some(named));
            named
        })
    });
    if is_worker.unwrap_or(false) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator with the caller's own arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`; the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `realloc`; the pointer came from `System`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Also of requests that are copied for the shadow core: the copies go round.
#[test]
fn a_copied_request_in_steady_state_allocates_nothing() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::echoing("");
    let mut definition = definition(&[upstream.address], &[upstream.address]);
    definition.objectives[0].shadow = vec![everything("ranker@2")];
    let router = Router::with(&definition, |config| {
        config.shadow.enabled = true;
        config.state_dir = folder.path().to_owned();
    });
    let mut client = Client::connect(router.address);
    let feed = post("FEED", "x-user-id: u1\r\n", "{\"k\":10}");
    let mut asked = 0;
    let mut ask = |rounds: u64| {
        for _ in 0..rounds {
            client.send(&feed);
            assert_eq!(client.answer().status, 200);
            // One copy is under way at a time, so that how many there are does not hang on the scheduler.
            asked += 1;
            while router.of_shadow(|shadow| shadow.spool_records.get()) < asked {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    };
    ask(50);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    ask(100);
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0);
}

#[test]
fn a_request_in_steady_state_allocates_nothing() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let upstream = Upstream::echoing("");
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    let mut client = Client::connect(router.address);
    let feed = post("FEED", "x-user-id: u1\r\n", "{\"k\":10}");
    let country = post("COUNTRY", "", "{\"context\":{\"country\":\"DE\"},\"x\":[1,2,3]}");
    for (name, request) in [("by header", feed), ("by body", country)] {
        let mut ask = |rounds: u64| {
            for _ in 0..rounds {
                client.send(&request);
                assert_eq!(client.answer().status, 200);
            }
        };
        ask(50); // pools and tables grow to what this traffic needs
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        assert!(before > 0, "the worker's allocations are counted");
        ask(500);
        let count = ALLOCATIONS.load(Ordering::Relaxed) - before;
        eprintln!("{count} allocations in 500 requests {name}");
        assert_eq!(count, 0, "{name}");
    }
}

/// A lookup of two Facts, one of them a hash's, spliced into the body or written as headers; or found in the near-cache.
#[test]
fn a_request_with_facts_in_steady_state_allocates_nothing() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let upstream = Upstream::echoing("");
    let cache = Cache::answering(|key| bulk(if key.starts_with("country") { "DE" } else { "7" }));
    for (into, near_bytes_max) in
        [(FactsInto::default(), 0), (FactsInto::Headers, 0), (FactsInto::default(), 1 << 20)]
    {
        let definition = with_facts(upstream.address, upstream.address, into.clone());
        let settings = redis(&cache);
        let router = Router::with(&definition, |config| {
            settings(config);
            config.facts.near_bytes_max = near_bytes_max;
            config.facts.near_ttl = Duration::from_secs(3600);
        });
        router.wait_for(1, |worker| worker.facts_connected.get());
        let mut client = Client::connect(router.address);
        let request = post("FEED", "x-user-id: u1\r\n", "{\"k\":10}");
        let mut ask = |rounds: u64| {
            for _ in 0..rounds {
                client.send(&request);
                assert_eq!(client.answer().header("x-switchboard-facts"), Some("hit"));
            }
        };
        ask(50);
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        ask(500);
        let count = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert_eq!(count, 0, "{into:?}, {near_bytes_max} bytes of near-cache");
    }
}
