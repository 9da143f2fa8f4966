use super::*;
use crate::active::HostNames;
use crate::samples;

const WORKERS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(60);

fn active(version: u64) -> Active {
    let definition = samples::definition(&["FEED"], &["127.0.0.1:9001"]);
    let snapshot = samples::snapshot(&definition, version);
    Active::prepare(snapshot, &HostNames::new(), WORKERS, None).unwrap()
}

fn version(held: &Held) -> u64 {
    held.snapshot.version().get()
}

#[test]
fn nothing_is_current_before_the_first_publication() {
    let (publisher, activation) = Activation::new(WORKERS);
    assert!(activation.reader(WorkerIndex(0)).current().is_none());
    assert!(activation.published().is_none());
    assert_eq!(publisher.wait(Duration::ZERO), Ok(vec![Duration::ZERO; WORKERS]));
}

#[test]
fn a_request_ends_on_the_snapshot_that_it_began_with() {
    let (mut publisher, activation) = Activation::new(WORKERS);
    publisher.publish(active(1));
    let mut reader = activation.reader(WorkerIndex(0));
    let request = Rc::clone(reader.current().unwrap());
    publisher.publish(active(2));
    assert_eq!(version(&request), 1);
    assert_eq!(version(reader.current().unwrap()), 2);
    assert_eq!(version(&request), 1);
}

#[test]
fn an_old_snapshot_is_freed_when_its_last_request_ends_and_by_the_publisher() {
    let (mut publisher, activation) = Activation::new(1);
    let mut reader = activation.reader(WorkerIndex(0));
    publisher.publish(active(1));
    let request = Rc::clone(reader.current().unwrap());
    let weak = Arc::downgrade(&request);
    publisher.publish(active(2));
    assert_eq!(publisher.free_unused(), 1, "a request still runs on it");
    assert!(reader.current().is_some());
    drop(request);
    assert!(weak.upgrade().is_some(), "the worker did not free it");
    assert_eq!(publisher.free_unused(), 0);
    assert!(weak.upgrade().is_none());
}

#[test]
fn who_has_not_swapped_is_named() {
    let (mut publisher, activation) = Activation::new(WORKERS);
    publisher.publish(active(1));
    assert!(activation.reader(WorkerIndex(0)).current().is_some());
    let late = publisher.wait(Duration::from_millis(1)).unwrap_err();
    assert_eq!(late, Stragglers(vec![WorkerIndex(1)]));
    assert_eq!(
        activation.swap_times().map(|swap| swap.is_some()).collect::<Vec<_>>(),
        [true, false]
    );
    // It swaps later, and all is well.
    assert!(activation.reader(WorkerIndex(1)).current().is_some());
    assert_eq!(publisher.wait(Duration::ZERO).unwrap().len(), WORKERS);
}

#[test]
fn workers_see_versions_only_go_up_and_all_acknowledge_each() {
    const LAST: u64 = 200;
    let (mut publisher, activation) = Activation::new(WORKERS);
    let watch = |worker: u16| {
        let activation = Arc::clone(&activation);
        std::thread::spawn(move || {
            let mut reader = activation.reader(WorkerIndex(worker));
            let mut seen = 0;
            while seen < LAST {
                let now = reader.current().map_or(0, version);
                assert!(now >= seen, "{now} after {seen}");
                seen = now;
                std::thread::yield_now();
            }
        })
    };
    let threads = [watch(0), watch(1)];
    for number in 1..=LAST {
        publisher.publish(active(number));
        assert_eq!(publisher.wait(PATIENCE).unwrap().len(), WORKERS);
        assert_eq!(publisher.free_unused(), 0, "every worker has left the older ones");
    }
    for thread in threads {
        thread.join().unwrap();
    }
}
