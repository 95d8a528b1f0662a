//! Finds the line and column of a field in YAML text. Only asked once something is wrong, so speed does not matter.

use saphyr_parser::{Event, Parser, Span};

/// One step from a document's root towards a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seg {
    Key(String),
    Index(usize),
}

impl From<&str> for Seg {
    fn from(key: &str) -> Seg {
        Seg::Key(key.to_string())
    }
}

/// The 1-based line and column of the value at `path`, or of its key. Where the path ends early (a default, a merge), the
/// deepest part of it that stands in the text.
pub fn locate(text: &str, path: &[Seg], want_key: bool) -> Option<(usize, usize)> {
    let mut events = Parser::new_from_str(text).filter_map(Result::ok);
    let mut found = None;
    loop {
        match events.next()? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (event, span) => {
                walk(&mut events, &event, span, path, want_key, &mut found);
                return found;
            }
        }
    }
}

fn at(span: Span) -> (usize, usize) {
    (span.start.line(), span.start.col() + 1)
}

fn walk<'t>(
    events: &mut impl Iterator<Item = (Event<'t>, Span)>,
    event: &Event<'t>,
    span: Span,
    path: &[Seg],
    want_key: bool,
    found: &mut Option<(usize, usize)>,
) -> Option<()> {
    *found = Some(at(span));
    match event {
        Event::MappingStart(..) => loop {
            let (key, key_span) = events.next()?;
            if matches!(key, Event::MappingEnd) {
                return Some(());
            }
            if !matches!(key, Event::Scalar(..) | Event::Alias(_)) {
                skip(events, &key)?;
            }
            let (value, value_span) = events.next()?;
            let wanted = matches!((path.first(), &key), (Some(Seg::Key(want)), Event::Scalar(have, ..)) if want == have);
            if !wanted {
                skip(events, &value)?;
            } else if path.len() == 1 && want_key {
                *found = Some(at(key_span));
                return None;
            } else {
                walk(events, &value, value_span, &path[1..], want_key, found);
                return None;
            }
        },
        Event::SequenceStart(..) => {
            let mut index = 0;
            loop {
                let (value, value_span) = events.next()?;
                if matches!(value, Event::SequenceEnd) {
                    return Some(());
                }
                if path.first() == Some(&Seg::Index(index)) {
                    walk(events, &value, value_span, &path[1..], want_key, found);
                    return None;
                }
                skip(events, &value)?;
                index += 1;
            }
        }
        _ => Some(()),
    }
}

fn skip<'t>(events: &mut impl Iterator<Item = (Event<'t>, Span)>, event: &Event<'t>) -> Option<()> {
    let mut depth = usize::from(matches!(event, Event::MappingStart(..) | Event::SequenceStart(..)));
    while depth > 0 {
        match events.next()?.0 {
            Event::MappingStart(..) | Event::SequenceStart(..) => depth += 1,
            Event::MappingEnd | Event::SequenceEnd => depth -= 1,
            _ => {}
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a: 1\nstages:\n  train:\n    grid: {L: [1, 2], N: [4]}\n    with:\n      - x\n      - warmpu: 3\n";

    fn path(segs: &[&str]) -> Vec<Seg> {
        segs.iter().map(|seg| seg.parse().map_or_else(|_| Seg::from(*seg), Seg::Index)).collect()
    }

    #[test]
    fn a_key_and_its_value_are_found_at_their_own_columns() {
        let path = path(&["stages", "train", "with", "1", "warmpu"]);
        assert_eq!(locate(TEXT, &path, true), Some((7, 9)));
        assert_eq!(locate(TEXT, &path, false), Some((7, 17)));
    }

    #[test]
    fn a_flow_sequence_is_walked_by_index() {
        assert_eq!(locate(TEXT, &path(&["stages", "train", "grid", "L", "1"]), false), Some((4, 19)));
    }

    #[test]
    fn a_path_that_ends_early_names_the_deepest_part_there_is() {
        assert_eq!(locate(TEXT, &path(&["stages", "train", "missing"]), false), Some((4, 5)));
        assert_eq!(locate("", &path(&["x"]), false), Some((1, 1)));
    }
}
