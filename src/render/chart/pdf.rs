//! Puts the objects of a PDF into one order. svg2pdf writes fonts and resources in the order of a hash map, which differs from run to
//! run; the same chart must be the same bytes.

use std::collections::BTreeMap;

/// An object: its text, and behind it the bytes of its stream and the end mark.
struct Object<'p> {
    text: String,
    rest: &'p [u8],
}

/// The same document with resources by name, and objects numbered in the order in which they are first named. None where the bytes
/// are not as svg2pdf writes them.
pub fn ordered(pdf: &[u8]) -> Option<Vec<u8>> {
    let tail_at = find_last(pdf, b"startxref")?;
    let table_at: usize = std::str::from_utf8(&pdf[tail_at..]).ok()?.split_whitespace().nth(1)?.parse().ok()?;
    let trailer_at = table_at + find_last(pdf.get(table_at..)?, b"trailer")?;
    let trailer = std::str::from_utf8(&pdf[trailer_at..tail_at]).ok()?;
    let objects = objects(pdf, table_at, std::str::from_utf8(&pdf[table_at..trailer_at]).ok()?)?;

    let mut names: Vec<usize> = references(trailer);
    let mut at = 0;
    while at < names.len() {
        for next in references(&objects.get(&names[at])?.text) {
            if !names.contains(&next) {
                names.push(next);
            }
        }
        at += 1;
    }
    let renamed = |text: &str| rename(text, &|old| names.iter().position(|name| *name == old).map(|at| at + 1));

    let start = pdf.windows(7).position(|part| part == b" 0 obj\n")?;
    let head = pdf[..start].iter().rposition(|byte| *byte == b'\n')? + 1;
    let mut out = pdf[..head].to_vec();
    let mut offsets = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let object = objects.get(name)?;
        offsets.push(out.len());
        out.extend(format!("{} 0 obj\n{}", at + 1, renamed(&object.text)?).bytes());
        out.extend(object.rest);
    }
    let table = out.len();
    out.extend(format!("xref\n0 {}\n0000000000 65535 f\r\n", offsets.len() + 1).bytes());
    for offset in offsets {
        out.extend(format!("{offset:010} 00000 n\r\n").bytes());
    }
    let size = trailer.split("/Size ").nth(1)?.split_whitespace().next()?;
    let trailer = renamed(&trailer.replace(&format!("/Size {size}"), &format!("/Size {}", names.len() + 1)))?;
    out.extend(format!("{trailer}startxref\n{table}\n%%EOF").bytes());
    Some(out)
}

/// The objects by number, from the table of their places.
fn objects<'p>(pdf: &'p [u8], end: usize, table: &str) -> Option<BTreeMap<usize, Object<'p>>> {
    let mut places: Vec<(usize, usize)> = Vec::new();
    for (number, line) in table.lines().skip(2).enumerate() {
        let mut words = line.split_whitespace();
        if let (Some(offset), Some("00000"), Some("n")) = (words.next(), words.next(), words.next()) {
            places.push((offset.parse().ok()?, number));
        }
    }
    places.sort_unstable();
    let mut found = BTreeMap::new();
    for (at, (from, number)) in places.iter().enumerate() {
        let to = places.get(at + 1).map_or(end, |(next, _)| *next);
        let bytes = pdf.get(*from..to)?.strip_prefix(format!("{number} 0 obj\n").as_bytes())?;
        let ends = [&b"\nstream\n"[..], b"\nendobj"].map(|mark| bytes.windows(mark.len()).position(|part| part == mark));
        let text_end = ends.into_iter().flatten().min()?;
        let text = by_name(std::str::from_utf8(&bytes[..text_end]).ok()?);
        found.insert(*number, Object { text, rest: &bytes[text_end..] });
    }
    Some(found)
}

/// Sorts lines side by side that name numbered resources: `/gs0 9 0 R`, `/fo1 2 0 R`.
fn by_name(text: &str) -> String {
    let key = |line: &str| -> Option<(String, usize)> {
        let name = line.trim_start().strip_prefix('/')?.split(' ').next()?;
        let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
        Some((letters.to_string(), name[letters.len()..].parse().ok()?))
    };
    let mut lines: Vec<&str> = text.split('\n').collect();
    let mut from = 0;
    while from < lines.len() {
        let run = lines[from..].iter().take_while(|line| key(line).is_some()).count();
        lines[from..from + run].sort_by_key(|line| key(line));
        from += run.max(1);
    }
    lines.join("\n")
}

/// The numbers of the objects that a text names as `7 0 R`, in order.
fn references(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(" 0 R") {
        if let Some((_, number)) = number_before(text, at)
            && !found.contains(&number)
        {
            found.push(number);
        }
    }
    found
}

/// The number that ends at a place, and where it starts.
fn number_before(text: &str, end: usize) -> Option<(usize, usize)> {
    let digits = text[..end].bytes().rev().take_while(u8::is_ascii_digit).count();
    Some((end - digits, text[end - digits..end].parse().ok()?))
}

/// Replaces the number of every reference; none if one has no new number.
fn rename(text: &str, new: &dyn Fn(usize) -> Option<usize>) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (at, _) in text.match_indices(" 0 R") {
        if let Some((start, number)) = number_before(text, at) {
            out.push_str(&text[done..start]);
            out.push_str(&new(number)?.to_string());
            done = at;
        }
    }
    out.push_str(&text[done..]);
    Some(out)
}

fn find_last(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).rposition(|part| part == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_stand_by_name() {
        let text = "<<\n  /Font <<\n    /fo10 3 0 R\n    /fo2 2 0 R\n    /fo0 1 0 R\n  >>\n>>";
        assert_eq!(by_name(text), "<<\n  /Font <<\n    /fo0 1 0 R\n    /fo2 2 0 R\n    /fo10 3 0 R\n  >>\n>>");
    }

    #[test]
    fn references_are_found_and_renamed() {
        let text = "/Kids [6 0 R 12 0 R]\n/Count 1";
        assert_eq!(references(text), [6, 12]);
        assert_eq!(rename(text, &|old| Some(old + 1)).unwrap(), "/Kids [7 0 R 13 0 R]\n/Count 1");
        assert_eq!(rename(text, &|_| None), None);
    }
}
