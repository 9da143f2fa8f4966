use super::*;

fn span(end: Option<Duration>) -> Span {
    let start = Instant::now();
    Span { start, measured_from: start, end: end.map(|end| start + end) }
}

fn constant(rate: f64) -> Load {
    Load::Open { rates: Rates::constant(rate), arrivals: Arrivals::Constant }
}

/// All tickets of all threads that a run of this length hands out, by the time they are due.
fn tickets(load: &Load, threads: u64, span: Span) -> Vec<Ticket> {
    let mut tickets = Vec::new();
    for thread in 0..threads {
        let mut schedule = Schedule::new(load.clone(), span, (thread, threads), None);
        tickets.extend(std::iter::from_fn(|| schedule.take(span.start, None)));
    }
    tickets.sort_by_key(|ticket| ticket.due);
    tickets
}

#[test]
fn threads_share_a_constant_rate_without_gaps_or_doubles() {
    let span = span(Some(Duration::from_secs(1)));
    let tickets = tickets(&constant(100.0), 3, span);
    assert_eq!(tickets.len(), 100);
    for (number, ticket) in (0_u32..).zip(&tickets) {
        assert_eq!(ticket.number, u64::from(number));
        assert_eq!(ticket.due - span.start, Duration::from_millis(10) * number);
    }
}

#[test]
fn a_schedule_holds_exactly_what_was_asked() {
    for rate in [1.0, 333.0, 1234.5, 20_000.0] {
        let due = tickets(&constant(rate), 4, span(Some(Duration::from_secs(20)))).len() as f64;
        assert!((due - rate * 20.0).abs() < 1.0, "{due} at {rate}");
    }
    let rates = "100@2s,400@2s".parse().unwrap();
    let stepped = Load::Open { rates, arrivals: Arrivals::Constant };
    let span = span(Some(Duration::from_secs(4)));
    let tickets = tickets(&stepped, 2, span);
    assert_eq!(tickets.len(), 1000);
    let in_first = tickets.iter().filter(|ticket| ticket.due < span.start + Duration::from_secs(2));
    assert_eq!(in_first.count(), 200);
}

#[test]
fn random_arrivals_keep_their_rate_and_are_independent_of_each_other() {
    let load =
        |seed| Load::Open { rates: Rates::constant(2000.0), arrivals: Arrivals::Poisson { seed } };
    let span = span(Some(Duration::from_secs(50)));
    let drawn = tickets(&load(7), 3, span);
    // 100 000 expected; four standard deviations are 1265.
    assert!((98_735..=101_265).contains(&drawn.len()), "{}", drawn.len());
    let gaps: Vec<f64> =
        drawn.windows(2).map(|pair| (pair[1].due - pair[0].due).as_secs_f64()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    // The distances of a Poisson process are exponential: as spread as they are long.
    let spread = variance.sqrt() / mean;
    assert!((0.98..=1.02).contains(&spread), "{spread}");
    let longer_than_mean = gaps.iter().filter(|gap| **gap > mean).count() as f64;
    let share = longer_than_mean / gaps.len() as f64;
    assert!((share - (-1.0_f64).exp()).abs() < 0.01, "{share}");
    assert_eq!(drawn, tickets(&load(7), 3, span), "a seed repeats them");
    assert_ne!(drawn, tickets(&load(8), 3, span));
    let mut numbers: Vec<_> = drawn.iter().map(|ticket| ticket.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), drawn.len());
}

#[test]
fn random_arrivals_that_nobody_took_are_overdue() {
    let arrivals = Arrivals::Poisson { seed: 3 };
    let load = Load::Open { rates: Rates::constant(100.0), arrivals };
    let span = span(Some(Duration::from_secs(2)));
    let mut schedule = Schedule::new(load.clone(), span, (0, 1), None);
    let all = tickets(&load, 1, span).len() as u64;
    assert_eq!(schedule.overdue(span.start + Duration::from_secs(9)), all);
    schedule.take(span.start, None).unwrap();
    assert_eq!(schedule.overdue(span.start + Duration::from_secs(9)), all - 1);
}

#[test]
fn what_is_overdue_is_sent_for_a_while_after_the_end() {
    let span = span(Some(Duration::from_secs(1)));
    let mut schedule = Schedule::new(constant(10.0), span, (0, 1), None);
    assert_eq!(schedule.take(span.start + Duration::from_millis(1999), None).unwrap().number, 0);
    let too_late = span.start + Duration::from_millis(2000);
    assert_eq!(schedule.take(too_late, None), None);
    assert_eq!(schedule.overdue(too_late), 9);
}

#[test]
fn the_number_of_requests_ends_a_schedule_too() {
    let span = span(None);
    let taken: Vec<_> = (0..2)
        .map(|thread| {
            let mut schedule = Schedule::new(Load::Closed, span, (thread, 2), Some(5));
            std::iter::from_fn(|| schedule.take(span.start, None)).count()
        })
        .collect();
    assert_eq!(taken, [3, 2]);
}

#[test]
fn a_closed_loop_is_due_when_it_asks() {
    let span = span(Some(Duration::from_secs(1)));
    let mut schedule = Schedule::new(Load::Closed, span, (0, 1), None);
    let now = span.start + Duration::from_millis(300);
    assert_eq!(schedule.take(now, None).unwrap().due, now);
    assert_eq!(schedule.take(span.start + Duration::from_secs(1), None), None);
}

#[test]
fn a_recorded_request_is_due_when_its_record_says() {
    let span = span(None);
    let mut schedule = Schedule::new(Load::Recorded, span, (0, 1), None);
    let offset = Duration::from_millis(40);
    assert_eq!(schedule.take(span.start, Some(offset)).unwrap().due, span.start + offset);
}

#[test]
fn what_nobody_took_in_time_is_overdue() {
    let span = span(Some(Duration::from_secs(1)));
    let mut schedule = Schedule::new(constant(10.0), span, (1, 2), None);
    let at = |milliseconds| span.start + Duration::from_millis(milliseconds);
    // This thread's requests are due at 100, 300, 500, 700 and 900 ms.
    assert_eq!(schedule.overdue(at(0)), 0);
    assert_eq!(schedule.overdue(at(350)), 2);
    assert!(schedule.is_due(at(350)) && !schedule.is_due(at(99)));
    schedule.take(at(350), None);
    assert_eq!(schedule.overdue(at(350)), 1);
    assert_eq!(schedule.overdue(at(99_000)), 4);
}
