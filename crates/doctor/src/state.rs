//! The probe's records: changes of PHP's state since the previous request.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// A record of the probe.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: String,
    /// The previous request in this process; none in a new process.
    pub(crate) after: Option<String>,
    pub(crate) memory: u64,
    #[serde(default)]
    pub(crate) changes: Vec<Change>,
    #[serde(default)]
    pub(crate) cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct Change {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
    /// The property that holds the value: `App\Cart->items`.
    #[serde(default)]
    pub(crate) owner: Option<String>,
    #[serde(default)]
    pub(crate) file: Option<String>,
}

impl Change {
    /// `true` for values of application code, which may be kept on purpose.
    pub(crate) fn is_value(&self) -> bool {
        match self.kind.as_str() {
            "static" | "function" | "loop" | "object" => true,
            // A variable of the worker script that holds another object now.
            "global" => {
                self.before.as_deref().is_some_and(is_object)
                    || self.after.as_deref().is_some_and(is_object) && self.before.is_some()
            }
            _ => false,
        }
    }

    /// `true` if loading code may cause the change, once.
    pub(crate) fn comes_with_code(&self) -> bool {
        let is_new = self.before.is_none();
        match self.kind.as_str() {
            "code" => true,
            "constant" | "autoloader" | "resource" => true,
            "wrapper" => match (&self.before, &self.after) {
                (Some(before), Some(after)) => after.starts_with(before.as_str()),
                _ => is_new,
            },
            "connection" => is_new && !self.after.as_deref().unwrap_or_default().starts_with("in a "),
            _ => false,
        }
    }

    /// `true` for open descriptors: a restore resets them, but their number varies with the server's own.
    pub(crate) fn is_reset(&self) -> bool {
        self.kind == "resource" && self.name == "open descriptors"
    }

    /// Location of the value, without the path of references to it.
    fn place(&self) -> String {
        if let Some(owner) = &self.owner {
            return owner.clone();
        }
        if !matches!(self.kind.as_str(), "static" | "function" | "global" | "loop") {
            return self.name.clone();
        }
        let end = self.name.find(['[', '{']).unwrap_or(self.name.len());
        let end = self.name.find("->").map_or(end, |arrow| arrow.min(end));
        self.name[..end].to_owned()
    }

    /// `true` if the change lies within the reported location.
    pub(crate) fn lies_in(&self, place: &Self) -> bool {
        let rest = self.name.strip_prefix(&place.name).filter(|_| self.kind == place.kind);
        self.owner.as_ref() == Some(&place.name)
            || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '{', '-']))
    }

    /// The value before and after, for display.
    pub(crate) fn values(&self) -> String {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        format!("{} → {}", shown(&self.before), shown(&self.after))
    }

    pub(crate) fn key(&self) -> (String, String) {
        (self.kind.clone(), self.name.clone())
    }

    /// `true` for an array that has more elements than before.
    pub(crate) fn grows(&self) -> bool {
        let count = |value: &Option<String>| {
            let text = value.as_deref()?;
            text[text.rfind('(')? + 1..].strip_suffix(')')?.parse::<u64>().ok()
        };
        matches!((count(&self.before), count(&self.after)), (Some(before), Some(after)) if after > before)
    }
}

/// `true` if the probe shows the value by its class.
fn is_object(value: &str) -> bool {
    let is_plain = value.starts_with(['"', '-']) || value.starts_with(|first: char| first.is_ascii_digit());
    !is_plain && !value.starts_with("array(") && !matches!(value, "NULL" | "true" | "false")
}

/// Reports each changed location once; leaves out changes inside a changed value.
pub(crate) fn places(changes: &[Change]) -> Vec<Change> {
    let names: BTreeSet<(&str, &str)> =
        changes.iter().map(|change| (change.kind.as_str(), change.name.as_str())).collect();
    let mut found: BTreeMap<(String, String), Change> = BTreeMap::new();
    for change in changes {
        let ends =
            change.name.char_indices().filter(|(at, c)| *at > 0 && matches!(c, '[' | '{' | '-')).map(|(at, _)| at);
        let is_inside = ends.into_iter().any(|end| names.contains(&(change.kind.as_str(), &change.name[..end])));
        if is_inside || change.kind == "code" {
            continue;
        }
        // A property of an object belongs to the object's class, wherever the object was found.
        let kind = if change.owner.is_some() { "object".to_owned() } else { change.kind.clone() };
        let told = Change { kind, name: change.place(), ..change.clone() };
        found.entry(told.key()).or_insert(told);
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: &str, name: &str, before: Option<&str>, after: Option<&str>) -> Change {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Change {
            kind: kind.into(),
            name: name.into(),
            before: owned(before),
            after: owned(after),
            owner: None,
            file: None,
        }
    }

    #[test]
    fn an_array_is_reported_without_its_elements() {
        let changes = [
            change("static", r"App\Cart::$items", Some("array(1)"), Some("array(2)")),
            change("static", r"App\Cart::$items[1]", None, Some("7")),
            change("static", r"App\Cart::$owners[1]", Some("1"), Some("7")),
        ];
        let told = places(&changes);
        assert_eq!(
            told.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(),
            [r"App\Cart::$items", r"App\Cart::$owners"]
        );
        assert!(told[0].grows() && !told[1].grows());
    }
}
