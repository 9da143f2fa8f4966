//! The values of one request's Facts, as they come in, and the commands that ask for them.

use std::cell::{Ref, RefCell};
use std::future::poll_fn;
use std::ops::Range;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;
use switchboard_shared::limits::FACTS_PER_ARM_MAX;
use switchboard_shared::snapshot::{ArchivedFact, syntax::UNIT_PLACE};

use super::resp::{self, ErrorClass};
use crate::limits::FACT_LOOKUPS_POOLED_MAX;

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

/// What became of an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Taken {
    /// Nobody waits for it any more, or another server may still give a better one.
    No,
    /// Others are awaited.
    Yes,
    /// It was the last one.
    Last,
}

/// One request's lookup. The request and the connections that were asked share it: whoever lets go last gives it back,
/// so an answer that nobody waits for any more is still taken from its connection, and goes nowhere else.
#[derive(Debug)]
pub struct Lookup {
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    bytes: Vec<u8>,
    answers: ArrayVec<Answer, FACTS_PER_ARM_MAX>,
    /// The commands, one behind the other.
    commands: Vec<u8>,
    asked: ArrayVec<Question, FACTS_PER_ARM_MAX>,
    awaited: usize,
    cut: Option<Cut>,
    began: Instant,
    deadline: Instant,
    /// Whether it waits for what another one asked for.
    is_shared: bool,
    waker: Option<Waker>,
}

/// Where one Fact's command and its key stand, and how many servers may still answer it.
#[derive(Clone, Debug)]
struct Question {
    command: Range<usize>,
    key: Range<usize>,
    attempts: u8,
    fresh_for: Option<Duration>,
}

impl Lookup {
    /// An empty one, due at `deadline`.
    #[must_use]
    pub fn new(now: Instant, deadline: Instant) -> Rc<Self> {
        let state = State {
            bytes: Vec::new(),
            answers: ArrayVec::new(),
            commands: Vec::new(),
            asked: ArrayVec::new(),
            awaited: 0,
            cut: None,
            began: now,
            deadline,
            is_shared: false,
            waker: None,
        };
        Rc::new(Self { state: RefCell::new(state) })
    }

    /// Makes a used one, which nobody else holds, as good as new.
    pub fn begin(&self, now: Instant, deadline: Instant) {
        let mut state = self.state.borrow_mut();
        state.bytes.clear();
        state.answers.clear();
        state.commands.clear();
        state.asked.clear();
        state.awaited = 0;
        state.cut = None;
        state.began = now;
        state.deadline = deadline;
        state.is_shared = false;
        state.waker = None;
    }

    /// Awaits one more Fact. `false`: there are as many as one lookup can have.
    pub fn expect(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let has_room = state.answers.try_push(Answer::Awaited).is_ok();
        state.awaited += usize::from(has_room);
        has_room
    }

    /// Awaits one more Fact, and writes the command that asks for it. `false`: there are as many as one lookup can
    /// have.
    pub fn expect_of_cache(&self, fact: &ArchivedFact, unit: &str) -> bool {
        if !self.expect() {
            return false;
        }
        let mut state = self.state.borrow_mut();
        let start = state.commands.len();
        let key = write_command(&mut state.commands, fact, unit);
        let command = start..state.commands.len();
        let fresh_for = fact.fresh_for_ms.as_ref().map(|millis| millis.to_native());
        let fresh_for = fresh_for.map(|millis| Duration::from_millis(millis.into()));
        let pushed = state.asked.try_push(Question { command, key, attempts: 0, fresh_for });
        debug_assert!(pushed.is_ok(), "there is a question for each answer");
        true
    }

    /// How many Facts it asks for.
    pub fn count(&self) -> usize {
        self.state.borrow().answers.len()
    }

    /// The command that asks for the Fact at `place`.
    pub fn command(&self, place: usize) -> Ref<'_, [u8]> {
        self.part(place, |asked| asked.command.clone())
    }

    /// The key of the Fact at `place`.
    pub fn key(&self, place: usize) -> Ref<'_, [u8]> {
        self.part(place, |asked| asked.key.clone())
    }

    /// How old a value of the Fact at `place` may be, where that is said.
    pub fn fresh_for(&self, place: usize) -> Option<Duration> {
        self.state.borrow().asked.get(place).and_then(|asked| asked.fresh_for)
    }

    fn part(&self, place: usize, range: impl Fn(&Question) -> Range<usize>) -> Ref<'_, [u8]> {
        Ref::map(self.state.borrow(), |state| {
            let range = state.asked.get(place).map(range).unwrap_or_default();
            state.commands.get(range).unwrap_or_default()
        })
    }

    /// One more server was asked for the Fact at `place`.
    pub fn sent(&self, place: usize) {
        if let Some(asked) = self.state.borrow_mut().asked.get_mut(place) {
            asked.attempts = asked.attempts.saturating_add(1);
        }
    }

    /// A server that was asked for the Fact at `place` will say nothing; another one may.
    pub fn unsent(&self, place: usize) {
        if let Some(asked) = self.state.borrow_mut().asked.get_mut(place) {
            asked.attempts = asked.attempts.saturating_sub(1);
        }
    }

    /// A server that was asked for the Fact at `place` is gone. If no other one was, the wait ends.
    pub fn lost(&self, place: usize) {
        self.unsent(place);
        if !self.is_asked(place) && self.is_awaiting(place) {
            self.cut(Cut::Lost);
        }
    }

    /// Whether some server will still say something of the Fact at `place`.
    pub fn is_asked(&self, place: usize) -> bool {
        self.state.borrow().asked.get(place).is_some_and(|asked| asked.attempts > 0)
    }

    /// It waits for what another lookup asked for, too.
    pub fn share(&self, place: usize) {
        self.sent(place);
        self.state.borrow_mut().is_shared = true;
    }

    /// Whether it waits for what another lookup asked for: then nobody but its request watches its deadline.
    pub fn is_shared(&self) -> bool {
        self.state.borrow().is_shared
    }

    /// The answer for the Fact at `place` is here.
    pub fn answer(&self, place: usize, value: Result<Option<&[u8]>, Answer>) -> Taken {
        self.unsent(place);
        let others = self.is_asked(place);
        let mut state = self.state.borrow_mut();
        let State { bytes, answers, awaited, waker, cut, .. } = &mut *state;
        let Some(answer @ Answer::Awaited) = answers.get_mut(place) else { return Taken::No };
        let is_unsure =
            matches!(value, Err(Answer::Failed(class)) if class != ErrorClass::WrongType);
        if cut.is_some() || (is_unsure && others) {
            return Taken::No;
        }
        *answer = match value {
            Ok(Some(value)) => {
                let start = bytes.len();
                bytes.extend_from_slice(value);
                Answer::Found(start..bytes.len())
            }
            Ok(None) => Answer::Absent,
            Err(answer) => answer,
        };
        *awaited -= 1;
        if *awaited > 0 {
            return Taken::Yes;
        }
        if let Some(waker) = waker.take() {
            waker.wake();
        }
        Taken::Last
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

    /// Whether no answer for the Fact at `place` came, whoever still waits for one.
    pub fn is_awaiting(&self, place: usize) -> bool {
        matches!(self.state.borrow().answers.get(place), Some(Answer::Awaited))
    }

    /// When it was asked for.
    pub fn began(&self) -> Instant {
        self.state.borrow().began
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

/// Appends `GET` or `HGET`; tells where the key stands.
fn write_command(out: &mut Vec<u8>, fact: &ArchivedFact, unit: &str) -> Range<usize> {
    let (before, after) = fact.key.split_once(UNIT_PLACE).unwrap_or((&fact.key, ""));
    let key: &[&[u8]] = &[before.as_bytes(), unit.as_bytes(), after.as_bytes()];
    let field = fact.hash_field.as_ref().map(|field| field.as_bytes());
    match field {
        None => resp::write(out, &[&[b"GET"], key]),
        Some(field) => resp::write(out, &[&[b"HGET"], key, &[field]]),
    }
    // Counted from behind, where the lengths of what follows are known.
    let behind = field.map_or(0, |field| resp::argument_bytes(field.len()));
    let end = out.len().saturating_sub(behind + 2);
    end.saturating_sub(before.len() + unit.len() + after.len())..end
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

/// A core's spare lookups.
#[derive(Debug, Default)]
pub struct LookupPool {
    spare: RefCell<Vec<Rc<Lookup>>>,
}

impl LookupPool {
    /// A lookup that nobody else holds.
    pub fn take(&self, now: Instant, deadline: Instant) -> Rc<Lookup> {
        match self.spare.borrow_mut().pop() {
            Some(lookup) => {
                lookup.begin(now, deadline);
                lookup
            }
            None => Lookup::new(now, deadline),
        }
    }

    /// Lets go of a lookup; the last of its holders keeps it for the next request.
    pub fn give_back(&self, lookup: Rc<Lookup>) {
        let mut spare = self.spare.borrow_mut();
        if Rc::strong_count(&lookup) == 1 && spare.len() < FACT_LOOKUPS_POOLED_MAX {
            spare.push(lookup);
        }
        debug_assert!(
            spare.iter().all(|lookup| Rc::strong_count(lookup) == 1),
            "nobody holds a spare lookup"
        );
    }
}
