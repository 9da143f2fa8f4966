//! From a character of a text to its place in the file, however YAML wrote the text.
//!
//! Quotes, escapes, folding and indentation change white space and add characters, but never the
//! order of the visible ones. So the n-th visible character of the value is the n-th visible one of
//! what stands in the file.

use super::yaml::Mark;

/// The place of character `offset` of `value`, which `scalar` wrote in `file`.
///
/// An offset at white space, or past the end, gives the next visible character, or the scalar's
/// last.
pub(crate) fn mark_within(file: &str, scalar: Mark, value: &str, offset: usize) -> Mark {
    let before = value.chars().take(offset).filter(|character| !character.is_whitespace()).count();
    let end = scalar.byte.saturating_add(scalar.length).min(file.len());
    let Some(raw) = file.get(scalar.byte..end) else { return scalar };
    let visible = visible_bytes(raw);
    let Some(place) = visible.get(before).or(visible.last()) else { return scalar };
    let Some(skipped) = raw.get(..*place) else { return scalar };
    match skipped.rsplit_once('\n') {
        None => Mark {
            column: scalar.column + count(skipped),
            byte: scalar.byte + place,
            length: 1,
            ..scalar
        },
        Some((earlier, line)) => Mark {
            line: scalar.line + 1 + count_lines(earlier),
            column: 1 + count(line),
            byte: scalar.byte + place,
            length: 1,
        },
    }
}

fn count(text: &str) -> u64 {
    u64::try_from(text.chars().count()).unwrap_or(u64::MAX)
}

fn count_lines(text: &str) -> u64 {
    u64::try_from(text.matches('\n').count()).unwrap_or(u64::MAX)
}

/// Where each visible character of the value stands in `raw`, quotes and header included.
fn visible_bytes(raw: &str) -> Vec<usize> {
    let style = raw.chars().next().unwrap_or_default();
    let begin = match style {
        '\'' | '"' => 1,
        '|' | '>' => raw.find('\n').unwrap_or(raw.len()),
        _ => 0,
    };
    let mut visible = Vec::new();
    let mut rest = raw.char_indices().skip_while(|(place, _)| *place < begin).peekable();
    while let Some((place, character)) = rest.next() {
        match (style, character) {
            ('\'', '\'') => match rest.next_if(|(_, next)| *next == '\'') {
                Some(_) => visible.push(place),
                None => break,
            },
            ('"', '"') => break,
            ('"', '\\') => {
                let digits = match rest.next() {
                    Some((_, 'n' | 't' | 'r' | ' ' | '\t' | '\n' | 'L' | 'P' | 'N' | '_'))
                    | None => continue,
                    Some((_, 'x')) => 2,
                    Some((_, 'u')) => 4,
                    Some((_, 'U')) => 8,
                    Some(_) => 0,
                };
                for _ in 0..digits {
                    rest.next();
                }
                visible.push(place);
            }
            (_, character) if character.is_whitespace() => {}
            _ => visible.push(place),
        }
    }
    visible
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::yaml::{Value, documents};

    /// Line and column of `needle` in the one text of a file.
    fn place(file: &str, needle: &str) -> (u64, u64) {
        let node = documents(file).expect("good YAML").remove(0);
        let scalar = node.under(&["when"]);
        let Value::Text(value) = &scalar.value else { panic!("{scalar:?} is no text") };
        let byte = value.find(needle).unwrap_or_else(|| panic!("{needle} in {value}"));
        let mark = mark_within(file, scalar.mark, value, value[..byte].chars().count());
        assert!(file[mark.byte..].starts_with(needle.chars().next().expect("a needle")));
        (mark.line, mark.column)
    }

    #[test]
    fn every_style_leads_back_to_the_file() {
        assert_eq!(place("when: a == bad", "bad"), (1, 12));
        assert_eq!(place("when: 'a == bad'", "bad"), (1, 13));
        assert_eq!(place("when: 'a == ''x'' || bad'", "bad"), (1, 22));
        assert_eq!(place("when: \"a == \\\"x\\\" || bad\"", "bad"), (1, 22));
        assert_eq!(place("when: \"\\u0061 == bad\"", "bad"), (1, 18));
        assert_eq!(place("when: 'ü == bad'", "bad"), (1, 13));
        assert_eq!(place("x: 1\nwhen: |\n  a == 1\n    && bad\n", "bad"), (4, 8));
        assert_eq!(place("x: 1\nwhen: >-\n  a == 1\n  && bad\n", "bad"), (4, 6));
        assert_eq!(place("when: a == 1\n  && bad", "bad"), (2, 6));
        assert_eq!(place("when: 'a == 1\n  && bad'", "bad"), (2, 6));
        assert_eq!(place("{ x: 1, when: 'a == bad' }", "bad"), (1, 21));
    }
}
