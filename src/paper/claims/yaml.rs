//! YAML as a tree in which everything knows its line and column, so that every mistake in a claims file can be pointed at.

use super::ClaimsError;
use saphyr_parser::{Event, Parser, ScalarStyle, Span};

/// 1-based line and column.
pub type Place = (usize, usize);

#[derive(Clone, Debug, PartialEq)]
pub struct Yaml {
    pub place: Place,
    pub node: Node,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Text, and how far its first character is from `place`; None where the text spans lines.
    Scalar(String, Option<usize>),
    List(Vec<Yaml>),
    Map(Vec<(Key, Yaml)>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub name: String,
    pub place: Place,
}

/// Deeper than this nobody writes by hand.
const DEEPEST: usize = 32;

/// Reads one document. `file` is for the messages.
pub fn parse(file: &str, text: &str) -> Result<Yaml, ClaimsError> {
    let mut events = Events { file, parser: Parser::new_from_str(text) };
    loop {
        match events.next()? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (Event::StreamEnd | Event::DocumentEnd, _) => return Ok(Yaml { place: (1, 1), node: Node::Map(Vec::new()) }),
            (event, span) => return events.value(event, span, 0),
        }
    }
}

struct Events<'t> {
    file: &'t str,
    parser: Parser<'t, saphyr_parser::StrInput<'t>>,
}

fn at(span: Span) -> Place {
    (span.start.line(), span.start.col() + 1)
}

impl<'t> Events<'t> {
    fn wrong(&self, place: Place, message: impl Into<String>) -> ClaimsError {
        ClaimsError::at(self.file, place, message)
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), ClaimsError> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let place = (error.marker().line(), error.marker().col() + 1);
                Err(self.wrong(place, error.info().to_string()))
            }
            None => Err(self.wrong((1, 1), "the file ends too early")),
        }
    }

    fn value(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Yaml, ClaimsError> {
        let place = at(span);
        if depth > DEEPEST {
            return Err(self.wrong(place, format!("nested more than {DEEPEST} levels deep")));
        }
        let node = match event {
            Event::Scalar(text, style, ..) => {
                let one_line = span.start.line() == span.end.line();
                let lead = match style {
                    ScalarStyle::Plain => 0,
                    _ => 1,
                };
                Node::Scalar(text.into_owned(), one_line.then_some(lead))
            }
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break Node::List(items),
                        (event, span) => items.push(self.value(event, span, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut entries: Vec<(Key, Yaml)> = Vec::new();
                loop {
                    let key = match self.next()? {
                        (Event::MappingEnd, _) => break Node::Map(entries),
                        (Event::Scalar(text, ..), span) => Key { name: text.into_owned(), place: at(span) },
                        (_, span) => return Err(self.wrong(at(span), "a key must be a word")),
                    };
                    if entries.iter().any(|(have, _)| have.name == key.name) {
                        return Err(self.wrong(key.place, format!("`{}` stands here twice", key.name)));
                    }
                    let (event, span) = self.next()?;
                    let value = self.value(event, span, depth + 1)?;
                    entries.push((key, value));
                }
            }
            Event::Alias(_) => return Err(self.wrong(place, "aliases (`*name`) are not read here; write the value out")),
            _ => return Err(self.wrong(place, "expected a value")),
        };
        Ok(Yaml { place, node })
    }
}

impl Yaml {
    /// What it is, for a message.
    pub fn is(&self) -> &'static str {
        match &self.node {
            Node::Scalar(text, _) if text.is_empty() => "nothing",
            Node::Scalar(..) => "text",
            Node::List(_) => "a list",
            Node::Map(_) => "a mapping",
        }
    }

    /// The place of a character of a scalar's text, as well as it is known.
    pub fn place_of(&self, offset: usize) -> Place {
        match &self.node {
            Node::Scalar(text, Some(lead)) => {
                let before = text.get(..offset).map_or(0, |before| before.chars().count());
                (self.place.0, self.place.1 + lead + before)
            }
            _ => self.place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_knows_its_place() {
        let yaml = parse("f", "a: 1\nb:\n  - c: 'x y'\n    d: [p, q]\n").unwrap();
        let Node::Map(top) = &yaml.node else { panic!() };
        assert_eq!(top[1].0.place, (2, 1));
        let Node::List(items) = &top[1].1.node else { panic!() };
        let Node::Map(item) = &items[0].node else { panic!() };
        assert_eq!((item[0].1.place, item[0].1.place_of(2)), ((3, 8), (3, 11)));
        let Node::List(flow) = &item[1].1.node else { panic!() };
        assert_eq!(flow[1].place, (4, 12));
    }

    #[test]
    fn what_is_no_yaml_is_told_with_its_place() {
        let message = |text: &str| parse("f", text).unwrap_err().to_string();
        assert_eq!(message("a: 1\na: 2\n"), "f:2:1: `a` stands here twice");
        assert_eq!(message("a: &x 1\nb: *x\n"), "f:2:4: aliases (`*name`) are not read here; write the value out");
        assert!(message("a: [1\n").starts_with("f:"), "{}", message("a: [1\n"));
    }
}
