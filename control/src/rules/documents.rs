//! The documents of a set of files, and where each part of them was written.

use std::collections::HashMap;

use super::{
    conditions::{ObjectiveConditions, compile},
    decode,
    fault::{FaultKind, Place, RuleFault},
    object::{Kind, Object, Objective},
    read::Reader,
    scalar::mark_within,
    yaml::{self, Mark, Node, Value},
};

/// Largest file, and largest sum of the files of one change: 10 000 Objectives × 8 Rules take about
/// 12 MiB.
pub const FILE_BYTES_MAX: usize = 16 << 20;

/// One rule file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuleFile {
    /// As the caller knows it; errors begin with it.
    pub name: String,
    /// YAML, any number of documents.
    pub text: String,
}

/// Objects as files write them, no two of the same kind and name.
#[derive(Debug, Default)]
pub struct Documents {
    documents: Vec<Document>,
    by_name: HashMap<(Kind, String), usize>,
}

#[derive(Debug)]
struct Document {
    file: String,
    root: Node,
    object: Object,
    /// Of an Objective without faults.
    conditions: Option<ObjectiveConditions>,
}

impl Documents {
    /// The objects, in the order of files and documents.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.documents.iter().map(|document| &document.object)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The compiled conditions of an Objective that a file holds.
    pub(crate) fn conditions(&self, token: &str) -> Option<&ObjectiveConditions> {
        let at = self.by_name.get(&(Kind::Objective, token.to_owned()))?;
        self.documents.get(*at)?.conditions.as_ref()
    }

    /// Where an Objective writes its token.
    pub(crate) fn place_of_token(&self, token: &str) -> Place {
        self.place(Kind::Objective, token, &["token"])
    }

    /// Where an object says what stands under a path of field names and list positions; as far as
    /// the path goes. An object that no file holds came from the registry.
    pub(crate) fn place(&self, kind: Kind, name: &str, path: &[&str]) -> Place {
        match self.by_name.get(&(kind, name.to_owned())).and_then(|at| self.documents.get(*at)) {
            Some(document) => place(&document.file, document.root.under(path).mark),
            None => Place { file: format!("registry: {kind} {name}"), line: 0, column: 0 },
        }
    }

    fn add(&mut self, document: Document, reader: &mut Reader<'_>) {
        let key = (document.object.kind(), document.object.name());
        if let Some(first) = self.by_name.get(&key).and_then(|at| self.documents.get(*at)) {
            let (kind, name) = &key;
            let found = format!("a second {kind} `{name}`");
            let first = place(&first.file, first.root.mark);
            let expected = format!("one; the first is at {first}");
            reader.fault(document.root.mark, FaultKind::Duplicate, found, expected);
            return;
        }
        self.by_name.insert(key, self.documents.len());
        self.documents.push(document);
    }
}

fn place(file: &str, mark: Mark) -> Place {
    Place { file: file.to_owned(), line: mark.line, column: mark.column }
}

/// Reads a set of files.
///
/// # Errors
/// Every fault of every file, as far as one can be read after another; sorted by place, never empty.
pub fn read(files: &[RuleFile]) -> Result<Documents, Vec<RuleFault>> {
    let mut documents = Documents::default();
    let mut faults = Vec::new();
    let mut bytes = 0_usize;
    for file in files {
        let mut reader = Reader::new(&file.name);
        bytes = bytes.saturating_add(file.text.len());
        if bytes > FILE_BYTES_MAX {
            let expected = format!("at most {FILE_BYTES_MAX} bytes in all files together");
            reader.fault(Mark::default(), FaultKind::Limit, "more rules", expected);
        } else {
            read_file(file, &mut documents, &mut reader);
        }
        faults.append(&mut reader.faults);
    }
    faults.sort();
    if faults.is_empty() { Ok(documents) } else { Err(faults) }
}

fn read_file(file: &RuleFile, documents: &mut Documents, reader: &mut Reader<'_>) {
    let roots = match yaml::documents(&file.text) {
        Ok(roots) => roots,
        Err(error) => {
            reader.fault(error.mark, FaultKind::Syntax, error.found, error.expected);
            return;
        }
    };
    for root in roots {
        if let Some(object) = decode::object(reader, &root) {
            let conditions = match &object {
                Object::Objective(objective) => conditions(file, &root, objective, reader),
                _ => None,
            };
            documents.add(Document { file: file.name.clone(), root, object, conditions }, reader);
        }
    }
}

/// Compiles the conditions of an Objective; each fault gets its place within the text.
fn conditions(
    file: &RuleFile,
    root: &Node,
    objective: &Objective,
    reader: &mut Reader<'_>,
) -> Option<ObjectiveConditions> {
    let faults = match compile(objective) {
        Ok(conditions) => return Some(conditions),
        Err(faults) => faults,
    };
    for (place, fault) in faults {
        let when = objective.rules.get(place).and_then(|rule| rule.when.as_deref());
        let scalar = root.under(&["rules", &place.to_string(), "when"]);
        debug_assert!(matches!(scalar.value, Value::Text(_)), "`when` was read from there");
        let mark = mark_within(&file.text, scalar.mark, when.unwrap_or_default(), fault.offset);
        reader.fault(mark, FaultKind::Expression, fault.found, fault.expected);
    }
    None
}
