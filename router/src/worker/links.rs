//! The live connections of a core, by key.

use std::rc::Rc;

use super::link::Link;

/// Live connections by key. A place is used again, a key is not: a closed socket's watch can still report
/// a hang-up after another connection has moved in, because the close goes through the ring and the
/// descriptor lives until then. A parameter, so that this is tested without sockets.
pub struct Links<L = Link> {
    places: Vec<Option<Placed<L>>>,
    free: Vec<u32>,
    entered: u32,
    live: u64,
}

struct Placed<L> {
    key: u64,
    link: Rc<L>,
}

impl<L> Default for Links<L> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new(), entered: 0, live: 0 }
    }
}

impl<L> Links<L> {
    /// How many there are.
    #[must_use]
    pub fn live(&self) -> u64 {
        self.live
    }

    /// Takes a connection in, and returns its key: how many came before it, and its place.
    ///
    /// The count starts again after 2³² connections; one of them would have to meet a hang-up that old.
    pub fn enter(&mut self, link: Rc<L>) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        self.entered = self.entered.wrapping_add(1);
        let key = u64::from(self.entered) << 32 | u64::from(place);
        if let Some(free) = self.places.get_mut(place as usize) {
            debug_assert!(free.is_none(), "a free place is empty");
            *free = Some(Placed { key, link });
            self.live += 1;
        }
        key
    }

    /// Lets a connection go.
    pub fn leave(&mut self, key: u64) {
        let place = place(key);
        let Some(slot) = self.places.get_mut(place as usize) else { return };
        if slot.take_if(|placed| placed.key == key).is_some() {
            self.live -= 1;
            self.free.push(place);
        }
    }

    /// The connection of a key, while it lives.
    #[must_use]
    pub fn get(&self, key: u64) -> Option<Rc<L>> {
        let placed = self.places.get(place(key) as usize)?.as_ref()?;
        (placed.key == key).then(|| Rc::clone(&placed.link))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &L> {
        self.places.iter().flatten().map(|placed| &*placed.link)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half of a key is its place")]
fn place(key: u64) -> u32 {
    key as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_hang_up_of_a_gone_connection_does_not_reach_the_next_one() {
        let mut links = Links::<()>::default();
        let gone = links.enter(Rc::new(()));
        links.leave(gone);
        let next = links.enter(Rc::new(()));
        assert_eq!(links.places.len(), 1, "the place is used again");
        assert!(links.get(gone).is_none());
        assert!(links.get(next).is_some());
    }

    #[test]
    fn a_connection_leaves_once() {
        let mut links = Links::<()>::default();
        let first = links.enter(Rc::new(()));
        let second = links.enter(Rc::new(()));
        links.leave(first);
        let third = links.enter(Rc::new(()));
        links.leave(first);
        assert_eq!(links.live(), 2);
        assert!(links.get(second).is_some() && links.get(third).is_some());
        assert_eq!(links.iter().count(), 2);
    }
}
