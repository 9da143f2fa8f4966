//! `when`: from CEL text to a typed Predicate.
//!
//! The crate `cel` parses; what the flat form of a Snapshot can hold is compiled, the rest is
//! refused at its column. CEL's own semantics hold throughout: a test of an attribute that the
//! request lacks is CEL's "no such attribute" error, `&&` and `||` absorb errors where the other
//! side decides, and a Rule holds only where the whole is true.

use std::collections::BTreeMap;

use cel::{
    IdedExpr, Program,
    common::ast::{CallExpr, Expr, LiteralValue, SourceInfo, operators},
};
use semver::VersionReq;
use switchboard_shared::{
    definition::{Check, Comparison, Predicate, Value},
    limits::{IN_VALUES_MAX, PREDICATE_DEPTH_MAX, PREDICATE_TESTS_MAX, TEXT_BYTES_MAX},
    snapshot::syntax,
};

use super::object::{Attribute, ValueKind};

/// Longest `when` in bytes: room for an `in` list of `IN_VALUES_MAX` short names.
pub(crate) const WHEN_BYTES_MAX: usize = 256 << 10;

/// What a Rule may ask, for error texts.
const ALLOWED: &str = "==, !=, <, <=, >, >= with a literal, `in [..]`, &&, ||, !, a bool \
                       attribute, x.startsWith(\"..\"), exists(x) or semver(x, \"..\"); x is an attribute, \
                       or a Fact as fact.NAME";

/// What stands before a Fact's name.
const FACT: &str = "fact";

/// Doubles tell integers apart up to 2⁵³.
const INTEGER_MAX: u64 = 1 << 53;

/// One mistake in an expression.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ExpressionFault {
    /// Where, in characters from the expression's first.
    pub(crate) offset: usize,
    /// What stands there.
    pub(crate) found: String,
    /// What should.
    pub(crate) expected: String,
}

/// Compiles `text`, whose names are attributes of `context`, or Facts as `fact.NAME`: of a Fact any type
/// will do here, since it may stand in a document that is yet to come; the Snapshot's check knows it.
///
/// # Errors
/// Every mistake that was found, each with its place; never empty.
pub(crate) fn compile(
    text: &str,
    context: &BTreeMap<String, Attribute>,
) -> Result<Predicate, Vec<ExpressionFault>> {
    let fault = |found: &str, expected: String| {
        Err(vec![ExpressionFault { offset: 0, found: found.to_owned(), expected }])
    };
    if text.trim().is_empty() {
        return fault("nothing", format!("a condition made of {ALLOWED}"));
    }
    if text.len() > WHEN_BYTES_MAX {
        return fault("a longer condition", format!("at most {WHEN_BYTES_MAX} bytes"));
    }
    if let Some(offset) = too_deep(text) {
        let expected = format!("at most {PREDICATE_DEPTH_MAX} levels of brackets");
        return Err(vec![ExpressionFault { offset, found: "deeper nesting".to_owned(), expected }]);
    }
    let program = Program::compile(text).map_err(|errors| syntax_faults(text, &errors))?;
    let mut compiler =
        Compiler { context, text, source: program.source_info(), faults: Vec::new(), tests: 0 };
    let predicate = compiler.predicate(program.expression());
    if compiler.tests > PREDICATE_TESTS_MAX {
        let found = format!("{} tests", compiler.tests);
        return fault(&found, format!("at most {PREDICATE_TESTS_MAX} in one condition"));
    }
    match predicate {
        Some(predicate) if compiler.faults.is_empty() => Ok(predicate),
        Some(_) | None => Err(compiler.faults),
    }
}

/// The parser recurses through a dozen frames per bracket, so what nests too deeply never gets
/// there. Brackets inside of literals count too: they would have to be very odd ones.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, character) in text.chars().enumerate() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > PREDICATE_DEPTH_MAX {
            return Some(offset);
        }
    }
    None
}

fn syntax_faults(text: &str, errors: &cel::ParseErrors) -> Vec<ExpressionFault> {
    let fault = |error: &cel::ParseError| {
        let (line, column) = error.pos;
        let line = usize::try_from(line).unwrap_or(1).max(1);
        let column = usize::try_from(column).unwrap_or(1).max(1);
        let before: usize =
            text.split_inclusive('\n').take(line - 1).map(|line| line.chars().count()).sum();
        let offset = (before + column - 1).min(text.chars().count());
        let detail = error.msg.trim_start_matches("Syntax error: ");
        // Then comes every token that the grammar knows.
        let detail = detail.split(" expecting ").next().unwrap_or(detail);
        ExpressionFault {
            offset,
            found: format!("what is no CEL ({})", detail.replace("<EOF>", "the end")),
            expected: format!("a condition made of {ALLOWED}"),
        }
    };
    let mut faults: Vec<_> = errors.errors.iter().map(fault).collect();
    faults.truncate(1); // what follows the first one is mostly its consequence
    faults
}

struct Compiler<'a> {
    context: &'a BTreeMap<String, Attribute>,
    text: &'a str,
    source: &'a SourceInfo,
    faults: Vec<ExpressionFault>,
    tests: usize,
}

/// The type of what is asked.
#[derive(Clone, Copy)]
enum Asked {
    Is(ValueKind),
    /// A Fact, whose type is not known here.
    Any,
}

impl Asked {
    fn may_be(self, kind: ValueKind) -> bool {
        match self {
            Self::Is(is) => is == kind,
            Self::Any => true,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Is(kind) => kind.word(),
            Self::Any => "string, number or bool",
        }
    }
}

impl Compiler<'_> {
    /// `None` where a fault was reported.
    fn predicate(&mut self, expression: &IdedExpr) -> Option<Predicate> {
        match &expression.expr {
            Expr::Call(call) => self.call(expression, call),
            Expr::Ident(_) | Expr::Select(_) if name_of(expression).is_some() => {
                let name = self.name(expression)?;
                let kind = self.attribute(expression, &name)?;
                if kind.may_be(ValueKind::Bool) {
                    let check = Check::Is(Comparison::Equal, Value::Boolean(true));
                    return self.test(&name, check);
                }
                let found = format!("`{name}`, which is a {}", kind.word());
                self.refuse(expression, found, "a bool attribute, or a comparison".to_owned())
            }
            other => {
                let expected = format!("a test of an attribute: {ALLOWED}");
                self.refuse(expression, describe(other), expected)
            }
        }
    }

    fn call(&mut self, expression: &IdedExpr, call: &CallExpr) -> Option<Predicate> {
        match (call.func_name.as_str(), &call.target, call.args.as_slice()) {
            (operators::LOGICAL_AND, None, [_, _]) => {
                self.parts(operators::LOGICAL_AND, expression).map(Predicate::All)
            }
            (operators::LOGICAL_OR, None, [_, _]) => {
                self.parts(operators::LOGICAL_OR, expression).map(Predicate::Any)
            }
            (operators::LOGICAL_NOT, None, [inner]) => {
                Some(Predicate::Not(Box::new(self.predicate(inner)?)))
            }
            (operators::IN, None, [name, list]) => self.one_of(name, list),
            ("startsWith", Some(name), [prefix]) => {
                let attribute = self.typed_attribute(name, ValueKind::String)?;
                let prefix = self.text_literal(prefix, "a text literal to begin with")?;
                self.test(&attribute, Check::Prefix(prefix))
            }
            ("exists", None, [name]) => {
                let attribute = self.name(name)?;
                self.attribute(name, &attribute)?;
                self.test(&attribute, Check::Exists)
            }
            ("semver", None, [name, range]) => self.semver(name, range),
            (operator, None, [left, right]) => match comparison(operator) {
                Some(comparison) => self.compare(expression, comparison, left, right),
                None => self.refuse(expression, describe_call(call), ALLOWED.to_owned()),
            },
            _ => self.refuse(expression, describe_call(call), ALLOWED.to_owned()),
        }
    }

    /// The operands of a chain of one operator, however the parser nested it.
    fn parts(&mut self, operator: &str, expression: &IdedExpr) -> Option<Vec<Predicate>> {
        let mut parts = Vec::new();
        let mut whole = true;
        let mut rest = vec![expression];
        while let Some(next) = rest.pop() {
            match &next.expr {
                Expr::Call(call) if call.func_name == operator => {
                    rest.extend(call.args.iter().rev())
                }
                _ => match self.predicate(next) {
                    Some(part) => parts.push(part),
                    None => whole = false, // go on: the other parts may have faults too
                },
            }
        }
        whole.then_some(parts)
    }

    fn compare(
        &mut self,
        expression: &IdedExpr,
        comparison: Comparison,
        left: &IdedExpr,
        right: &IdedExpr,
    ) -> Option<Predicate> {
        let (name, literal, comparison) = match (name_of(left), name_of(right)) {
            (Some(_), Some(_)) => {
                let expected = "an attribute on one side and a literal on the other".to_owned();
                return self.refuse(expression, "two attributes".to_owned(), expected);
            }
            (Some(name), None) => (name, right, comparison),
            (None, Some(name)) => (name, left, mirrored(comparison)),
            (None, None) => {
                let expected = "an attribute on one side and a literal on the other".to_owned();
                return self.refuse(left, describe(&left.expr), expected);
            }
        };
        let side = if std::ptr::eq(literal, right) { left } else { right };
        let kind = self.attribute(side, &name)?;
        let value = self.literal(literal, kind, &name)?;
        let ordered = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        if ordered && matches!(value, Value::Boolean(_)) {
            let found = format!("an order of `{name}`, which is a bool");
            return self.refuse(expression, found, "== or !=".to_owned());
        }
        self.test(&name, Check::Is(comparison, value))
    }

    fn one_of(&mut self, name: &IdedExpr, list: &IdedExpr) -> Option<Predicate> {
        let attribute = self.name(name)?;
        let kind = self.attribute(name, &attribute)?;
        let Expr::List(elements) = &list.expr else {
            let expected = format!("a list of {} literals, such as {}", kind.word(), sample(kind));
            return self.refuse(list, describe(&list.expr), expected);
        };
        let count = elements.elements.len();
        if !(1..=IN_VALUES_MAX).contains(&count) {
            let expected = format!("1 to {IN_VALUES_MAX} values");
            return self.refuse(list, format!("a list of {count} values"), expected);
        }
        let values: Vec<_> = elements
            .elements
            .iter()
            .map(|element| self.literal(element, kind, &attribute))
            .collect();
        let values = values.into_iter().collect::<Option<Vec<_>>>()?;
        self.test(&attribute, Check::In(values))
    }

    fn semver(&mut self, name: &IdedExpr, range: &IdedExpr) -> Option<Predicate> {
        let attribute = self.typed_attribute(name, ValueKind::String)?;
        let expected = "a range such as \">=1.2, <2\"";
        let text = self.text_literal(range, expected)?;
        match VersionReq::parse(&text) {
            Ok(_) => self.test(&attribute, Check::Semver(text)),
            Err(error) => self.refuse(range, format!("`{text}` ({error})"), expected.to_owned()),
        }
    }

    fn name(&mut self, expression: &IdedExpr) -> Option<String> {
        let name = name_of(expression);
        if name.is_none() {
            let expected = "the name of an attribute, or of a Fact as fact.NAME".to_owned();
            return self.refuse(expression, describe(&expression.expr), expected);
        }
        name
    }

    fn typed_attribute(&mut self, expression: &IdedExpr, expected: ValueKind) -> Option<String> {
        let name = self.name(expression)?;
        let kind = self.attribute(expression, &name)?;
        if kind.may_be(expected) {
            return Some(name);
        }
        let found = format!("`{name}`, which is a {}", kind.word());
        self.refuse(expression, found, format!("a {} attribute", expected.word()))
    }

    fn attribute(&mut self, expression: &IdedExpr, name: &str) -> Option<Asked> {
        if syntax::fact_of_attribute(name).is_some() {
            return Some(Asked::Any);
        }
        if let Some(attribute) = self.context.get(name) {
            return Some(Asked::Is(attribute.kind));
        }
        let names: Vec<_> = self.context.keys().map(String::as_str).collect();
        let expected = match names.as_slice() {
            [] => "no attribute at all: the Objective declares no context".to_owned(),
            names => format!("an attribute of the Objective's context: {}", names.join(", ")),
        };
        self.refuse(expression, format!("`{name}`"), expected)
    }

    fn text_literal(&mut self, expression: &IdedExpr, expected: &str) -> Option<String> {
        match &expression.expr {
            Expr::Literal(LiteralValue::String(text)) if text.inner().len() <= TEXT_BYTES_MAX => {
                Some(text.inner().to_owned())
            }
            other => self.refuse(expression, describe(other), expected.to_owned()),
        }
    }

    fn literal(&mut self, expression: &IdedExpr, kind: Asked, name: &str) -> Option<Value> {
        let value = match &expression.expr {
            Expr::Literal(literal) => literal_value(literal),
            _ => None,
        };
        match value {
            Some(Value::Text(text))
                if kind.may_be(ValueKind::String) && text.len() <= TEXT_BYTES_MAX =>
            {
                Some(Value::Text(text))
            }
            Some(value @ Value::Number(_)) if kind.may_be(ValueKind::Number) => Some(value),
            Some(value @ Value::Boolean(_)) if kind.may_be(ValueKind::Bool) => Some(value),
            Some(_) | None => {
                let expected = format!("a {} literal, as `{name}` is one", kind.word());
                self.refuse(expression, describe(&expression.expr), expected)
            }
        }
    }

    fn test(&mut self, attribute: &str, check: Check) -> Option<Predicate> {
        self.tests += 1;
        Some(Predicate::Test { attribute: attribute.to_owned(), check })
    }

    fn refuse<T>(&mut self, expression: &IdedExpr, found: String, expected: String) -> Option<T> {
        let offset = self.offset(expression);
        self.faults.push(ExpressionFault { offset, found, expected });
        None
    }

    fn offset(&self, expression: &IdedExpr) -> usize {
        let (start, _) = self.source.offset_for(expression.id).unwrap_or_default();
        let start = usize::try_from(start).unwrap_or_default();
        match &expression.expr {
            // The parser gives a function's opening bracket; its name stands before that.
            Expr::Call(call) if self.text.chars().nth(start) == Some('(') => {
                start.saturating_sub(call.func_name.chars().count())
            }
            _ => start,
        }
    }
}

/// The attribute that an expression names: `x`, or `fact.x` for the Fact `x`.
fn name_of(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => match &select.operand.expr {
            Expr::Ident(root) if root == FACT => Some(format!("{FACT}.{}", select.field))
                .filter(|name| syntax::fact_of_attribute(name).is_some()),
            _ => None,
        },
        _ => None,
    }
}

fn comparison(operator: &str) -> Option<Comparison> {
    Some(match operator {
        operators::EQUALS => Comparison::Equal,
        operators::NOT_EQUALS => Comparison::NotEqual,
        operators::LESS => Comparison::Less,
        operators::LESS_EQUALS => Comparison::LessOrEqual,
        operators::GREATER => Comparison::Greater,
        operators::GREATER_EQUALS => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// The same relation read from the right.
fn mirrored(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Equal => Comparison::Equal,
        Comparison::NotEqual => Comparison::NotEqual,
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
    }
}

/// `None` for bytes, null, and integers that a double cannot hold exactly.
fn literal_value(literal: &LiteralValue) -> Option<Value> {
    #[expect(clippy::cast_precision_loss, reason = "within 2^53, where doubles are exact")]
    match literal {
        LiteralValue::Boolean(boolean) => Some(Value::Boolean(*boolean.inner())),
        LiteralValue::String(text) => Some(Value::Text(text.inner().to_owned())),
        LiteralValue::Double(number) => {
            number.inner().is_finite().then(|| Value::Number(*number.inner()))
        }
        LiteralValue::Int(number) => (number.inner().unsigned_abs() <= INTEGER_MAX)
            .then(|| Value::Number(*number.inner() as f64)),
        LiteralValue::UInt(number) => {
            (*number.inner() <= INTEGER_MAX).then(|| Value::Number(*number.inner() as f64))
        }
        LiteralValue::Bytes(_) | LiteralValue::Null => None,
    }
}

fn sample(kind: Asked) -> &'static str {
    match kind {
        Asked::Is(ValueKind::String) | Asked::Any => "[\"DE\", \"AT\"]",
        Asked::Is(ValueKind::Number) => "[1, 2.5]",
        Asked::Is(ValueKind::Bool) => "[true]",
    }
}

fn describe(expression: &Expr) -> String {
    match expression {
        Expr::Literal(LiteralValue::String(text)) => {
            format!("the text literal \"{}\"", shortened(text.inner()))
        }
        Expr::Literal(LiteralValue::Boolean(boolean)) => format!("the literal {}", boolean.inner()),
        Expr::Literal(LiteralValue::Int(number)) => format!("the number {}", number.inner()),
        Expr::Literal(LiteralValue::UInt(number)) => format!("the number {}u", number.inner()),
        Expr::Literal(LiteralValue::Double(number)) => format!("the number {}", number.inner()),
        Expr::Literal(LiteralValue::Bytes(_)) => "a bytes literal".to_owned(),
        Expr::Literal(LiteralValue::Null) => "null".to_owned(),
        Expr::Ident(name) => format!("`{name}`"),
        Expr::List(_) => "a list".to_owned(),
        Expr::Map(_) | Expr::Struct(_) => "a map".to_owned(),
        Expr::Select(select) => format!("a selection of `.{}`", select.field),
        Expr::Comprehension(_) => "a macro over a list".to_owned(),
        Expr::Call(call) => describe_call(call),
        Expr::Unspecified => "nothing".to_owned(),
    }
}

fn describe_call(call: &CallExpr) -> String {
    match call.func_name.as_str() {
        operators::CONDITIONAL => "the operator `? :`".to_owned(),
        operators::INDEX => "an index".to_owned(),
        operators::NEGATE => "a negation of what is no literal".to_owned(),
        name => match name.trim_matches('_') {
            operator if operator != name => format!("the operator `{operator}`"),
            "@in" => "the operator `in`".to_owned(),
            function => format!("the function `{}` with {} arguments", shortened(function), {
                call.args.len()
            }),
        },
    }
}

fn shortened(text: &str) -> String {
    const CHARACTERS_MAX: usize = 40;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
