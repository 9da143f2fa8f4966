//! The values of one request's Facts, as they come in.

use std::cell::{Ref, RefCell};
use std::future::poll_fn;
use std::ops::Range;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Instant;

use arrayvec::ArrayVec;
use switchboard_shared::limits::FACTS_PER_ARM_MAX;

use super::resp::ErrorClass;

/// What is known of one Fact.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Answer {
    /// Not there yet.
    #[default]
    Awaited,
    /// Its value stands at this place of the lookup's bytes.
    Found(Range<usize>),
    /// The cache has none.
    Absent,
    /// The cache answered with an error.
    Failed(ErrorClass),
    /// The value is no text, or too long.
    Unfit,
}

/// How a lookup ended before all answers were there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cut {
    /// Its budget is spent.
    Late,
    /// The connection was lost.
    Lost,
}

/// One request's lookup. The request and the connection share it: whoever lets go last gives it back, so an
/// answer that nobody waits for any more is still taken from the connection, and goes nowhere else.
#[derive(Debug)]
pub struct Lookup {
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    bytes: Vec<u8>,
    answers: ArrayVec<Answer, FACTS_PER_ARM_MAX>,
    awaited: usize,
    cut: Option<Cut>,
    deadline: Instant,
    waker: Option<Waker>,
}

impl Lookup {
    /// An empty one, due at `deadline`.
    #[must_use]
    pub fn new(deadline: Instant) -> Rc<Self> {
        let state = State {
            bytes: Vec::new(),
            answers: ArrayVec::new(),
            awaited: 0,
            cut: None,
            deadline,
            waker: None,
        };
        Rc::new(Self { state: RefCell::new(state) })
    }

    /// Makes a used one, which nobody else holds, as good as new.
    pub fn begin(&self, deadline: Instant) {
        let mut state = self.state.borrow_mut();
        state.bytes.clear();
        state.answers.clear();
        state.awaited = 0;
        state.cut = None;
        state.deadline = deadline;
        state.waker = None;
    }

    /// Awaits one more Fact. `false`: there are as many as one lookup can have.
    pub fn expect(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let has_room = state.answers.try_push(Answer::Awaited).is_ok();
        state.awaited += usize::from(has_room);
        has_room
    }

    /// The answer for the Fact at `place` is here.
    pub fn answer(&self, place: usize, value: Result<Option<&[u8]>, Answer>) {
        let mut state = self.state.borrow_mut();
        let State { bytes, answers, awaited, waker, cut, .. } = &mut *state;
        let Some(answer @ Answer::Awaited) = answers.get_mut(place) else { return };
        *answer = match value {
            Ok(Some(value)) if cut.is_none() => {
                let start = bytes.len();
                bytes.extend_from_slice(value);
                Answer::Found(start..bytes.len())
            }
            // Nobody looks at it any more.
            Ok(Some(_)) => Answer::Unfit,
            Ok(None) => Answer::Absent,
            Err(answer) => answer,
        };
        *awaited -= 1;
        if *awaited == 0
            && let Some(waker) = waker.take()
        {
            waker.wake();
        }
    }

    /// Ends the wait. `false`: it was over.
    pub fn cut(&self, cut: Cut) -> bool {
        let mut state = self.state.borrow_mut();
        if state.is_over() {
            return false;
        }
        state.cut = Some(cut);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        true
    }

    /// When the wait ends at the latest; `None`: it is over.
    pub fn due(&self) -> Option<Instant> {
        let state = self.state.borrow();
        (!state.is_over()).then_some(state.deadline)
    }

    /// When its budget is spent.
    pub fn deadline(&self) -> Instant {
        self.state.borrow().deadline
    }

    /// Waits until all answers are there, or the lookup is cut. It is, by its deadline.
    pub async fn wait(&self) {
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            if state.is_over() {
                return Poll::Ready(());
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// What is known so far.
    pub fn values(&self) -> Values<'_> {
        Values(self.state.borrow())
    }
}

/// The values of a lookup, held while they are read.
pub struct Values<'a>(Ref<'a, State>);

impl Values<'_> {
    /// What is known of the Fact at `place`, with its value where it is found.
    pub fn get(&self, place: usize) -> (&Answer, &[u8]) {
        let answer = self.0.answers.get(place).unwrap_or(&Answer::Awaited);
        let value = match answer {
            Answer::Found(range) => self.0.bytes.get(range.clone()).unwrap_or_default(),
            _ => &[],
        };
        (answer, value)
    }

    /// How the lookup was cut, if it was.
    pub fn cut(&self) -> Option<Cut> {
        self.0.cut
    }
}

impl State {
    fn is_over(&self) -> bool {
        self.awaited == 0 || self.cut.is_some()
    }
}
