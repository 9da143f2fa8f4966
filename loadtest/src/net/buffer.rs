//! Bytes that came from a stream and wait to be parsed.

use std::io;

use monoio::buf::IoBufMut;

use super::stream::Stream;

/// A read buffer that is filled at the end and consumed at the front.
#[derive(Debug)]
pub struct ReadBuffer {
    bytes: Vec<u8>,
    consumed: usize,
    capacity_max: usize,
}

impl ReadBuffer {
    /// Holds `capacity` bytes at first and grows to `capacity_max` where one head needs it.
    pub fn new(capacity: usize, capacity_max: usize) -> Self {
        Self { bytes: Vec::with_capacity(capacity), consumed: 0, capacity_max }
    }

    /// What has come and was not consumed yet.
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.consumed..]
    }

    /// Gives up the first `count` unread bytes.
    pub fn consume(&mut self, count: usize) {
        self.consumed += count;
        debug_assert!(self.consumed <= self.bytes.len());
        if self.consumed == self.bytes.len() {
            self.bytes.clear();
            self.consumed = 0;
        }
    }

    /// Reads once and returns how many bytes came; zero at the end of the stream.
    ///
    /// A caller that drops this future loses the unread bytes: it must close the stream too.
    ///
    /// # Errors
    /// What the stream says; `OutOfMemory` where `capacity_max` unread bytes are held already.
    pub async fn fill(&mut self, stream: &mut Stream) -> io::Result<usize> {
        self.make_room()?;
        let filled = self.bytes.len();
        let bytes = std::mem::take(&mut self.bytes);
        let (result, slice) = stream.read(bytes.slice_mut(filled..)).await;
        self.bytes = slice.into_inner();
        result
    }

    fn make_room(&mut self) -> io::Result<()> {
        if self.bytes.len() < self.bytes.capacity() {
            return Ok(());
        }
        if self.consumed > 0 {
            self.bytes.drain(..self.consumed);
            self.consumed = 0;
            return Ok(());
        }
        if self.bytes.len() >= self.capacity_max {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        }
        let more = self.bytes.capacity().min(self.capacity_max - self.bytes.len());
        self.bytes.reserve_exact(more);
        Ok(())
    }
}
