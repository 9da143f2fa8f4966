use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use io_uring::{opcode, types};

use super::*;
use crate::limits::{ARRIVED_BYTES_MAX, BUFFER_BYTES, LENT_BUFFERS, RING_ENTRIES};
use crate::net::buffer::Buffer;
use crate::net::stream::{Shut, Stream, Waited, shut};
use crate::net::{clock, task};

/// Runs the future on a ring of each kind.
fn on_each_ring<F: Future<Output = ()>>(test: impl Fn() -> F) {
    for mode in RingMode::BEST_FIRST {
        let reactor = Reactor::new(mode).expect("this kernel has all kinds of rings");
        run_on(reactor, async { test().await }).expect("a ring that runs");
    }
}

/// Our end of a connection, and the peer's, which blocks.
fn pair() -> (Stream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    (Stream::new(OwnedFd::from(ours)).expect("a ring runs"), theirs)
}

fn bytes(count: usize) -> Vec<u8> {
    (0..251).cycle().take(count).collect()
}

async fn read_exactly(stream: &mut Stream, count: usize) -> Vec<u8> {
    let mut buffer = Buffer::default();
    while buffer.len() < count {
        let (result, returned) = stream.reader.read(buffer).await;
        buffer = returned;
        assert!(result.expect("a sound connection") > 0, "closed after {} bytes", buffer.len());
    }
    buffer.filled().to_vec()
}

#[test]
fn what_is_sent_arrives_and_the_end_is_the_end() {
    on_each_ring(|| async {
        let (mut stream, mut peer) = pair();
        peer.write_all(b"hello").unwrap();
        assert_eq!(read_exactly(&mut stream, 5).await, b"hello");
        let mut buffer = Buffer::default();
        buffer.extend(b"answer");
        let (result, _) = stream.writer.write_all(buffer).await;
        result.unwrap();
        let mut seen = [0; 6];
        peer.read_exact(&mut seen).unwrap();
        assert_eq!(&seen, b"answer");
        drop(peer);
        for _ in 0..2 {
            let (result, _) = stream.reader.read(Buffer::default()).await;
            assert_eq!(result.unwrap(), 0);
        }
    });
}

#[test]
fn a_dropped_read_loses_no_byte() {
    on_each_ring(|| async {
        let (mut stream, mut peer) = pair();
        let (mut seen, mut dropped) = (Vec::new(), 0);
        for round in 0..100_u8 {
            match clock::within(Duration::ZERO, stream.reader.read(Buffer::default())).await {
                Some((result, buffer)) => {
                    result.unwrap();
                    seen.extend_from_slice(buffer.filled());
                }
                None => dropped += 1,
            }
            peer.write_all(&[round]).unwrap();
        }
        seen.extend(read_exactly(&mut stream, 100 - seen.len()).await);
        assert_eq!(seen, (0..100).collect::<Vec<u8>>());
        assert!(dropped > 0, "no read was dropped");
    });
}

#[test]
fn a_slow_reader_stops_its_peer_and_then_gets_every_byte() {
    on_each_ring(|| async {
        let (mut stream, mut peer) = pair();
        let all = bytes(64 << 20);
        let sent = all.clone();
        let sender = std::thread::spawn(move || peer.write_all(&sent).is_ok());
        stream.reader.readable().await;
        let mut before = usize::MAX;
        while before != stream.reader.handle().unread() {
            before = stream.reader.handle().unread();
            clock::sleep(Duration::from_millis(20)).await;
        }
        let (_, waiting) = stream.reader.waiting();
        let pinned_max = ARRIVED_BYTES_MAX + usize::from(LENT_BUFFERS) * BUFFER_BYTES;
        assert!(waiting <= pinned_max, "{waiting} bytes are pinned");
        assert!(!sender.is_finished(), "the peer must wait");
        assert_eq!(read_exactly(&mut stream, all.len()).await, all);
        assert!(sender.join().unwrap());
    });
}

#[test]
fn a_trickle_pins_one_buffer() {
    on_each_ring(|| async {
        let (mut stream, mut peer) = pair();
        assert!(clock::within(Duration::from_millis(1), stream.reader.readable()).await.is_none());
        for byte in 0..200_u8 {
            peer.write_all(&[byte]).unwrap();
            clock::sleep(Duration::from_micros(100)).await;
        }
        assert!(stream.reader.waiting().0 <= 1);
        assert_eq!(read_exactly(&mut stream, 200).await, (0..200).collect::<Vec<u8>>());
    });
}

#[test]
fn a_nudge_ends_a_wait_and_bytes_come_before_it() {
    on_each_ring(|| async {
        let (mut stream, mut peer) = pair();
        let handle = stream.reader.handle();
        task::spawn(async move { handle.nudge() });
        assert_eq!(stream.reader.readable_unless_nudged().await, Waited::Nudged);
        peer.write_all(b"x").unwrap();
        stream.reader.readable().await;
        stream.reader.handle().nudge();
        assert_eq!(stream.reader.readable_unless_nudged().await, Waited::Ready);
        assert_eq!(read_exactly(&mut stream, 1).await, b"x");
    });
}

#[test]
fn a_dropped_stream_is_closed_though_it_was_watched() {
    on_each_ring(|| async {
        let (stream, mut peer) = pair();
        assert!(clock::within(Duration::from_millis(1), stream.reader.readable()).await.is_none());
        drop(stream);
        clock::sleep(Duration::from_millis(1)).await;
        clock::sleep(Duration::from_millis(1)).await;
        peer.set_nonblocking(true).unwrap();
        assert_eq!(peer.read(&mut [0]).expect("closed, not silent"), 0);
    });
}

#[test]
fn an_abandoned_write_keeps_its_bytes_until_the_kernel_is_done() {
    on_each_ring(|| async {
        let (mut stream, mut peer) = pair();
        let mut buffer = Buffer::default();
        buffer.extend(&bytes(4 << 20));
        let written = stream.writer.write_all(buffer);
        assert!(clock::within(Duration::from_millis(5), written).await.is_none());
        shut(stream.fd(), Shut::Both);
        let mut seen = Vec::new();
        peer.read_to_end(&mut seen).unwrap();
        assert!(!seen.is_empty() && seen == bytes(seen.len()));
    });
}

#[test]
fn a_quiet_connection_is_told_from_one_that_closed_or_speaks() {
    on_each_ring(|| async {
        let (stream, mut peer) = pair();
        assert!(stream.is_quiet());
        assert!(clock::within(Duration::from_millis(1), stream.reader.readable()).await.is_none());
        assert!(stream.is_quiet());
        peer.write_all(b"x").unwrap();
        stream.reader.readable().await;
        assert!(!stream.is_quiet());
        let (stream, peer) = pair();
        assert!(clock::within(Duration::from_millis(1), stream.reader.readable()).await.is_none());
        drop(peer);
        stream.reader.readable().await;
        assert!(!stream.is_quiet());
    });
}

#[test]
fn more_entries_than_the_ring_holds_are_all_done() {
    on_each_ring(|| async {
        let done = Rc::new(RefCell::new(0));
        let (stream, mut peer) = pair();
        let count = 3 * RING_ENTRIES as usize;
        let (first, second) = UnixStream::pair().expect("a pair");
        drop(second);
        let closed = Rc::new(OwnedFd::from(first));
        for _ in 0..count {
            let polled = Reactor::current().expect("a ring runs").start(Rc::clone(&closed), |fd| {
                let events = u32::from(libc::POLLIN.cast_unsigned());
                opcode::PollAdd::new(types::Fd(fd.as_raw_fd()), events).build()
            });
            let done = Rc::clone(&done);
            task::spawn(async move {
                polled.await.0.expect("a closed pair is readable");
                *done.borrow_mut() += 1;
            });
        }
        peer.write_all(b"x").unwrap();
        stream.reader.readable().await;
        while *done.borrow() < count {
            clock::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn tasks_that_wake_each_other_starve_nobody() {
    on_each_ring(|| async {
        let (mut stream, mut peer) = pair();
        let is_over = Rc::new(Cell::new(false));
        let seen = Rc::clone(&is_over);
        task::spawn(poll_fn(move |context| {
            context.waker().wake_by_ref();
            if seen.get() { Poll::Ready(()) } else { Poll::Pending }
        }));
        peer.write_all(b"x").unwrap();
        assert_eq!(read_exactly(&mut stream, 1).await, b"x");
        clock::sleep(Duration::from_millis(1)).await;
        is_over.set(true);
    });
}

#[test]
fn sleepers_wake_in_the_order_of_their_deadlines() {
    on_each_ring(|| async {
        let order = Rc::new(RefCell::new(Vec::new()));
        for millis in [9, 3, 6, 1] {
            let order = Rc::clone(&order);
            task::spawn(async move {
                clock::sleep(Duration::from_millis(millis)).await;
                order.borrow_mut().push(millis);
            });
        }
        clock::sleep(Duration::from_millis(30)).await;
        assert_eq!(*order.borrow(), [1, 3, 6, 9]);
    });
}
