//! What may stand in `url`: a web address, or a reference to a dataset of the hub.

use crate::paper::data::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `name` is the last part of the path, which the file will be called.
    Http {
        name: String,
    },
    Hub(Dataset),
}

/// `hf://datasets/OWNER/NAME@REVISION/PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataset {
    pub repository: String,
    pub revision: String,
    /// May have `*` in it.
    pub path: String,
}

impl Address {
    pub fn parse(text: &str) -> Result<Self, Error> {
        let bad = |what: &str| Error::BadAddress { address: text.to_owned(), what: what.to_owned() };
        if let Some(rest) = text.strip_prefix("hf://") {
            let form = "a reference to the hub is `hf://datasets/OWNER/NAME/PATH`";
            let rest = rest.strip_prefix("datasets/").ok_or_else(|| bad(form))?;
            let mut parts = rest.splitn(3, '/');
            let (Some(owner), Some(name), Some(path)) = (parts.next(), parts.next(), parts.next()) else { return Err(bad(form)) };
            let (name, revision) = name.split_once('@').unwrap_or((name, "main"));
            if [owner, name, revision, path].contains(&"") {
                return Err(bad(form));
            }
            let dataset = Dataset { repository: format!("{owner}/{name}"), revision: revision.to_owned(), path: path.to_owned() };
            return Ok(Self::Hub(dataset));
        }
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let rest = rest.ok_or_else(|| bad("it must begin with `https://`, `http://` or `hf://`"))?;
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        let name = path.split_once('/').and_then(|(_, path)| path.rsplit('/').next()).unwrap_or_default();
        if !is_plain(name) {
            return Err(bad("its path must end in the name of a file"));
        }
        Ok(Self::Http { name: name.to_owned() })
    }

    pub fn is_pattern(&self) -> bool {
        matches!(self, Self::Hub(dataset) if dataset.path.contains(['*', '?', '[', '{']))
    }
}

/// Whether a name can be given to a file of ours: no folders, nothing hidden, nothing above.
pub fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        assert_eq!(Address::parse("https://a.b/c/d.parquet?x=1").ok(), Some(Address::Http { name: "d.parquet".into() }));
        let Ok(Address::Hub(dataset)) = Address::parse("hf://datasets/HuggingFaceFW/fineweb-edu@v1/sample/10BT/*.parquet") else {
            panic!("a dataset")
        };
        assert_eq!(dataset.repository, "HuggingFaceFW/fineweb-edu");
        assert_eq!((dataset.revision.as_str(), dataset.path.as_str()), ("v1", "sample/10BT/*.parquet"));
    }

    #[test]
    fn wrong_addresses_say_what_is_wrong() {
        for (text, told) in [
            ("ftp://a/b", "must begin with"),
            ("https://host", "must end in the name of a file"),
            ("https://host/..", "must end in the name of a file"),
            ("hf://models/a/b/c", "hf://datasets/OWNER/NAME/PATH"),
            ("hf://datasets/a/b", "hf://datasets/OWNER/NAME/PATH"),
        ] {
            let error = Address::parse(text).expect_err("these are no addresses").to_string();
            assert!(error.contains(told) && error.contains(text), "{error}");
        }
    }
}
