//! Bytes on their way: a growable window that the kernel fills at one end and drains at the other.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use super::ring::reactor::Reactor;
use crate::limits::{BUFFER_BYTES, BUFFERS_POOLED_MAX};

/// A byte queue over one allocation: bytes are appended at the end and consumed at the front.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    /// An empty buffer that can hold `capacity` bytes without growing.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { bytes: Vec::with_capacity(capacity), start: 0 }
    }

    /// The bytes that were appended but not consumed.
    #[must_use]
    pub fn filled(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// The same, to be changed in place.
    pub fn filled_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }

    /// How many bytes are filled.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Whether nothing is filled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many more bytes fit without growing.
    #[must_use]
    pub fn spare(&self) -> usize {
        self.bytes.capacity() - self.bytes.len()
    }

    /// Drops `count` bytes from the front; more than are filled empties it.
    pub fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.bytes.len());
        if self.start == self.bytes.len() {
            self.clear();
        }
    }

    /// Drops the bytes after the first `count` filled ones.
    pub fn truncate(&mut self, count: usize) {
        self.bytes.truncate(self.start + count);
    }

    /// Forgets all bytes; the allocation stays.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
    }

    /// Makes room for `count` more bytes: moves the filled bytes to the front first, and grows the
    /// allocation only where that is not enough.
    pub fn reserve(&mut self, count: usize) {
        if self.spare() >= count {
            return;
        }
        self.compact();
        self.bytes.reserve(count);
    }

    /// Moves the filled bytes to the start of the allocation.
    pub fn compact(&mut self) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }

    /// Appends bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Where the kernel may write behind the filled bytes, and how much; it does not move before the buffer
    /// is changed.
    pub(super) fn room(&mut self) -> (*mut u8, u32) {
        let room = self.bytes.spare_capacity_mut();
        (room.as_mut_ptr().cast(), u32::try_from(room.len()).unwrap_or(u32::MAX))
    }

    /// Counts bytes that the kernel wrote into [`Self::room`].
    ///
    /// # Safety
    /// The kernel initialised `count` bytes from the room's start, and it had as many.
    pub(super) unsafe fn arrived(&mut self, count: usize) {
        debug_assert!(count <= self.spare(), "the kernel writes within the room");
        let length = self.bytes.len() + count;
        // SAFETY: the caller initialised them.
        unsafe { self.bytes.set_len(length) };
    }

    /// The end of the queue as a vector, for writers that append.
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

/// A buffer lent to a write, with how much of it has left. The filled bytes stay, so that the same
/// request can be sent again.
pub(super) struct Unsent {
    pub(super) buffer: Buffer,
    pub(super) sent: usize,
}

impl Unsent {
    /// What has not left. It does not move while the buffer is not changed, wherever this value goes.
    pub(super) fn rest(&self) -> &[u8] {
        self.buffer.filled().get(self.sent..).unwrap_or_default()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }
}

/// Two buffers that leave in one vectored write. The vectors live on the heap, since the runtime
/// moves this value after it took their address. The filled bytes stay.
pub(super) struct Gather {
    first: Buffer,
    second: Buffer,
    sent: usize,
    vectors: Box<[libc::iovec; 2]>,
}

impl Gather {
    pub(super) fn new(first: Buffer, second: Buffer, vectors: Box<[libc::iovec; 2]>) -> Self {
        let mut gather = Self { first, second, sent: 0, vectors };
        gather.point();
        gather
    }

    /// Counts what a write took and points the vectors at the rest.
    pub(super) fn advance(&mut self, count: usize) {
        self.sent += count;
        self.point();
    }

    pub(super) fn sent(&self) -> usize {
        self.sent
    }

    /// Where the rests are. The vectors do not move wherever this value goes.
    pub(super) fn vectors(&self) -> &[libc::iovec; 2] {
        &self.vectors
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent >= self.first.len() + self.second.len()
    }

    pub(super) fn into_parts(self) -> (Buffer, Buffer, Box<[libc::iovec; 2]>) {
        (self.first, self.second, self.vectors)
    }

    fn point(&mut self) {
        let mut sent = self.sent;
        for (vector, buffer) in self.vectors.iter_mut().zip([&self.first, &self.second]) {
            let rest = buffer.filled().get(sent..).unwrap_or_default();
            sent = sent.saturating_sub(buffer.len());
            vector.iov_base = rest.as_ptr().cast_mut().cast();
            vector.iov_len = rest.len();
        }
    }
}

/// Vectors that point nowhere, to be reused from write to write.
pub(super) fn empty_vectors() -> Box<[libc::iovec; 2]> {
    let vector = || libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    Box::new([vector(), vector()])
}

/// A core's spare buffers of [`BUFFER_BYTES`], so that steady traffic allocates nothing.
#[derive(Default)]
pub struct BufferPool {
    free: RefCell<Vec<Buffer>>,
}

impl BufferPool {
    /// The one that this core's ring receives with.
    ///
    /// # Errors
    /// No ring runs on this thread.
    pub fn of_this_core() -> io::Result<Rc<Self>> {
        Ok(Rc::clone(Reactor::current()?.buffers()))
    }

    /// An empty buffer with room for [`BUFFER_BYTES`].
    #[must_use]
    pub fn take(&self) -> Buffer {
        let pooled = self.free.borrow_mut().pop();
        pooled.unwrap_or_else(|| Buffer::with_capacity(BUFFER_BYTES))
    }

    /// Takes a buffer back. One that grew, or that the pool has no use for, is freed.
    pub fn put_back(&self, mut buffer: Buffer) {
        let mut free = self.free.borrow_mut();
        let is_regular = (BUFFER_BYTES..=2 * BUFFER_BYTES).contains(&buffer.bytes.capacity());
        if is_regular && free.len() < BUFFERS_POOLED_MAX {
            buffer.clear();
            free.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consuming_all_makes_the_whole_allocation_spare_again() {
        let mut buffer = Buffer::with_capacity(8);
        buffer.extend(b"abcdefgh");
        buffer.consume(3);
        assert_eq!(buffer.filled(), b"defgh");
        assert_eq!(buffer.spare(), 0);
        buffer.consume(5);
        assert_eq!(buffer.spare(), 8);
    }

    #[test]
    fn room_is_made_by_moving_before_growing() {
        let mut buffer = Buffer::with_capacity(8);
        buffer.extend(b"abcdefgh");
        buffer.consume(6);
        buffer.reserve(6);
        assert_eq!((buffer.filled(), buffer.spare()), (&b"gh"[..], 6));
    }

    #[test]
    fn a_partly_written_gather_points_at_the_rest() {
        let (mut first, mut second) = (Buffer::default(), Buffer::default());
        first.extend(b"head");
        second.extend(b"body");
        let mut gather = Gather::new(first, second, empty_vectors());
        gather.advance(6);
        let lengths: Vec<usize> = gather.vectors.iter().map(|vector| vector.iov_len).collect();
        assert_eq!(lengths, [0, 2]);
        gather.advance(2);
        assert!(gather.is_empty());
        assert_eq!(gather.into_parts().1.filled(), b"body", "a sent body can be sent again");
    }

    #[test]
    fn a_buffer_that_grew_is_not_pooled() {
        let pool = BufferPool::default();
        pool.put_back(Buffer::with_capacity(4 * BUFFER_BYTES));
        assert!(pool.free.borrow().is_empty());
        pool.put_back(Buffer::with_capacity(BUFFER_BYTES));
        assert_eq!(pool.free.borrow().len(), 1);
    }
}
