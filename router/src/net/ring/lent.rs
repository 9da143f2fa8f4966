//! Buffers that the kernel chooses from when bytes arrive, so that a connection that waits holds none
//! (a provided-buffer ring, `io_uring_register(2)`, `IORING_REGISTER_PBUF_RING`).

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

use crate::limits::LENT_BUFFERS;
use crate::net::buffer::{Buffer, BufferPool};

const _: () = assert!(LENT_BUFFERS.is_power_of_two(), "the kernel masks the tail with it");

/// The group that receives name.
pub(super) const GROUP: u16 = 0;

/// `mmap` and the kernel want the ring at a page's start.
const PAGE_BYTES: usize = 4096;

/// The ring of entries that the kernel reads, and the buffers behind them.
pub(super) struct LentBuffers {
    entries: NonNull<BufRingEntry>,
    lent: Box<[Option<Buffer>]>,
    tail: u16,
}

impl LentBuffers {
    /// Registers the ring and lends a buffer for each place.
    ///
    /// # Errors
    /// What the kernel said: `EINVAL` before Linux 5.19.
    pub(super) fn register(ring: &IoUring, pool: &BufferPool) -> io::Result<Self> {
        let layout = Layout::array::<BufRingEntry>(usize::from(LENT_BUFFERS))
            .and_then(|layout| layout.align_to(PAGE_BYTES))
            .map_err(io::Error::other)?;
        // SAFETY: the layout is not of zero size.
        let entries = unsafe { alloc_zeroed(layout) };
        let Some(entries) = NonNull::new(entries.cast::<BufRingEntry>()) else {
            handle_alloc_error(layout)
        };
        let address = entries.as_ptr() as u64;
        // SAFETY: the memory has that many entries, starts at a page, and is never freed: it ends with
        // the process, as the ring does.
        unsafe { ring.submitter().register_buf_ring(address, LENT_BUFFERS, GROUP)? };
        let lent = std::iter::repeat_with(|| None).take(usize::from(LENT_BUFFERS)).collect();
        let mut buffers = Self { entries, lent, tail: 0 };
        for id in 0..LENT_BUFFERS {
            buffers.lend(id, pool.take());
        }
        buffers.publish();
        Ok(buffers)
    }

    /// Takes the buffer that the kernel chose, with the `count` bytes that it wrote, and lends another in
    /// its place; [`Self::publish`] shows that one to the kernel. `None`: the kernel chose none of ours.
    pub(super) fn take(&mut self, id: u16, count: usize, pool: &BufferPool) -> Option<Buffer> {
        let mut buffer = self.lent.get_mut(usize::from(id))?.take()?;
        // SAFETY: the buffer was lent empty with this much room, and the completed receive wrote `count`
        // bytes from its start.
        unsafe { buffer.arrived(count) };
        self.lend(id, pool.take());
        Some(buffer)
    }

    /// Shows the kernel what was lent since the last time.
    pub(super) fn publish(&self) {
        // SAFETY: the ring's tail lies in its first entry, which lives as long as the process.
        let tail = unsafe { BufRingEntry::tail(self.entries.as_ptr()) };
        // SAFETY: it is aligned, valid for ever, and written by this thread only; the kernel reads it.
        let tail = unsafe { AtomicU16::from_ptr(tail.cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    fn lend(&mut self, id: u16, mut buffer: Buffer) {
        let (address, length) = buffer.room();
        let place = usize::from(self.tail & (LENT_BUFFERS - 1));
        // SAFETY: the place is within the ring's memory.
        let entry = unsafe { self.entries.add(place) };
        // SAFETY: the kernel does not read an entry before the tail is published behind it, and nobody
        // else refers to it.
        let entry = unsafe { &mut *entry.as_ptr() };
        entry.set_addr(address as u64);
        entry.set_len(length);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        if let Some(place) = self.lent.get_mut(usize::from(id)) {
            *place = Some(buffer);
        }
    }
}
