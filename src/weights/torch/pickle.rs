//! The pickle machine: reads the instruction stream into a table of nodes. It can make lists,
//! dictionaries, numbers, text and the few objects that `build.rs` knows; it runs no code.

use super::{
    super::{Error, Format, Result, cursor::Cursor},
    build::Allow,
};
use bytes::Bytes;
use std::{collections::HashMap, path::Path};

/// Place of a node in the table. Python objects are shared and change after they were
/// referred to, so containers hold ids.
pub(super) type Id = usize;

/// An unpickled object.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    /// UTF-8 (not yet checked), as it stands in the pickle.
    Text(Bytes),
    Raw(Bytes),
    /// Bytes written as Latin-1 text.
    Latin1(Bytes),
    List(Vec<Id>),
    Tuple(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Class(String),
    Object {
        class: String,
        args: Vec<Id>,
        fields: Vec<(Id, Id)>,
    },
    Storage(super::Storage),
    Tensor(super::Tensor),
    Dtype(super::NumpyType),
    Array(super::Array),
}

/// What a pickle held.
pub(super) struct Pickle {
    pub nodes: Vec<Node>,
    pub root: Id,
    /// Bytes of the stream that were read.
    pub end: usize,
}

/// Reads one pickle from the start of `data`.
pub(super) fn read(path: &Path, data: &Bytes, allow: &Allow) -> Result<Pickle> {
    let mut machine = Machine {
        cursor: Cursor::new(path, Format::Torch, data),
        allow,
        nodes: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
    };
    loop {
        let op = machine.cursor.u8("pickle instruction")?;
        if op == b'.' {
            break;
        }
        machine.step(op)?;
    }
    let root = machine.pop()?;
    Ok(Pickle {
        root,
        end: machine.cursor.pos,
        nodes: machine.nodes,
    })
}

pub(super) struct Machine<'a> {
    pub cursor: Cursor<'a>,
    pub allow: &'a Allow,
    pub nodes: Vec<Node>,
    stack: Vec<Id>,
    /// Stack heights at the open marks.
    marks: Vec<usize>,
    memo: HashMap<u64, Id>,
}

impl Machine<'_> {
    pub fn error(&self, detail: impl Into<String>) -> Error {
        let detail = detail.into();
        let at = self.cursor.pos;
        self.cursor
            .invalid(format!("pickle, before offset {at}: {detail}"))
    }

    pub fn new_node(&mut self, node: Node) -> Id {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn push(&mut self, node: Node) {
        let id = self.new_node(node);
        self.stack.push(id);
    }

    fn pop(&mut self) -> Result<Id> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor {
            return Err(self.error("takes from an empty stack"));
        }
        Ok(self.stack.pop().unwrap_or_default())
    }

    fn top(&self) -> Result<Id> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.last() {
            Some(&id) if self.stack.len() > floor => Ok(id),
            _ => Err(self.error("looks at an empty stack")),
        }
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Id>> {
        match self.marks.pop() {
            Some(mark) => Ok(self.stack.split_off(mark)),
            None => Err(self.error("ends a group that was not begun")),
        }
    }

    fn pop_pairs(&mut self) -> Result<Vec<(Id, Id)>> {
        let items = self.pop_to_mark()?;
        let (pairs, rest) = items.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(self.error("a dictionary has a key without a value"));
        }
        Ok(pairs.iter().map(|&[k, v]| (k, v)).collect())
    }

    fn step(&mut self, op: u8) -> Result<()> {
        match op {
            // Protocol number; frame length, which only helps a streaming reader.
            0x80 => drop(self.cursor.u8("protocol")?),
            0x95 => drop(self.cursor.u64("frame length")?),
            b'(' => self.marks.push(self.stack.len()),
            b'0' => self.pop_or_unmark()?,
            b'1' => drop(self.pop_to_mark()?),
            b'2' => {
                let id = self.top()?;
                self.stack.push(id);
            }
            b'N' => self.push(Node::Null),
            0x88 => self.push(Node::Bool(true)),
            0x89 => self.push(Node::Bool(false)),
            b'I' | b'L' | b'F' | b'S' | b'V' => self.text_literal(op)?,
            b'J' | b'K' | b'M' | b'G' | 0x8a | 0x8b => self.number(op)?,
            b'X' | b'T' | b'U' | b'B' | b'C' | 0x8c | 0x8d | 0x8e | 0x96 => self.bytes(op)?,
            b')' => self.push(Node::Tuple(Vec::new())),
            b']' | 0x8f => self.push(Node::List(Vec::new())),
            b'}' => self.push(Node::Dict(Vec::new())),
            b't' | b'l' | b'd' | 0x91 | 0x85..=0x87 => self.collect(op)?,
            b'a' | b'e' | 0x90 | b's' | b'u' => self.extend(op)?,
            b'p' | b'q' | b'r' | 0x94 => self.remember(op)?,
            b'g' | b'h' | b'j' => self.recall(op)?,
            b'c' | 0x93 => self.global(op)?,
            b'P' | b'Q' => self.persistent(op)?,
            b'R' | 0x81 | 0x92 => self.construct(op)?,
            b'b' => {
                let state = self.pop()?;
                let target = self.top()?;
                self.set_state(target, state)?;
            }
            other => {
                return Err(self.error(format!("instruction {other:#04x} is not supported")));
            }
        }
        Ok(())
    }

    fn pop_or_unmark(&mut self) -> Result<()> {
        if self.marks.last() == Some(&self.stack.len()) {
            self.marks.pop();
            Ok(())
        } else {
            self.pop().map(drop)
        }
    }

    /// The rest of the line, without its end.
    fn line(&mut self) -> Result<String> {
        let rest = &self.cursor.data[self.cursor.pos..];
        let Some(n) = rest.iter().position(|&b| b == b'\n') else {
            return Err(self.error("a line does not end"));
        };
        let text = self.cursor.text(n as u64, "pickle line")?;
        self.cursor.pos += 1;
        Ok(text)
    }

    fn text_literal(&mut self, op: u8) -> Result<()> {
        let line = self.line()?;
        let bad = |m: &Self| m.error(format!("bad literal {line:?}"));
        let node = match (op, line.as_str()) {
            (b'I', "00") => Node::Bool(false),
            (b'I', "01") => Node::Bool(true),
            (b'I' | b'L', text) => match text.trim_end_matches('L').parse() {
                Ok(i) => Node::Int(i),
                Err(_) => return Err(bad(self)),
            },
            (b'F', text) => match text.parse() {
                Ok(f) => Node::Float(f),
                Err(_) => return Err(bad(self)),
            },
            (_, text) if text.contains('\\') => {
                return Err(self.error("escapes in protocol 0 text are not supported"));
            }
            (b'S', text) => Node::Text(text.trim_matches(['\'', '"']).to_owned().into()),
            (_, text) => Node::Text(text.to_owned().into()),
        };
        self.push(node);
        Ok(())
    }

    fn number(&mut self, op: u8) -> Result<()> {
        let c = &mut self.cursor;
        let node = match op {
            b'J' => Node::Int(c.i32("integer")?.into()),
            b'K' => Node::Int(c.u8("integer")?.into()),
            b'M' => Node::Int(c.u16("integer")?.into()),
            b'G' => Node::Float(f64::from_bits(c.u64("float")?.swap_bytes())),
            _ => {
                let n = match op {
                    0x8a => u64::from(c.u8("integer length")?),
                    _ => u64::from(c.u32("integer length")?),
                };
                let bytes = c.take(n, "integer")?;
                let Some(value) = signed(&bytes) else {
                    return Err(self.error(format!("an integer of {n} bytes")));
                };
                Node::Int(value)
            }
        };
        self.push(node);
        Ok(())
    }

    fn bytes(&mut self, op: u8) -> Result<()> {
        let c = &mut self.cursor;
        let n = match op {
            b'C' | b'U' | 0x8c => c.u8("text length")?.into(),
            b'X' | b'B' | b'T' => c.u32("text length")?.into(),
            _ => c.u64("text length")?,
        };
        let bytes = c.take(n, "text")?;
        self.push(match op {
            b'B' | b'C' | 0x8e | 0x96 => Node::Raw(bytes),
            // Python 2 strings: text if they can be, else bytes.
            b'T' | b'U' if std::str::from_utf8(&bytes).is_err() => Node::Raw(bytes),
            _ => Node::Text(bytes),
        });
        Ok(())
    }

    fn collect(&mut self, op: u8) -> Result<()> {
        let node = match op {
            b't' => Node::Tuple(self.pop_to_mark()?),
            b'l' | 0x91 => Node::List(self.pop_to_mark()?),
            b'd' => Node::Dict(self.pop_pairs()?),
            _ => {
                let n = usize::from(op - 0x84);
                let mut items = Vec::with_capacity(n);
                for _ in 0..n {
                    items.push(self.pop()?);
                }
                items.reverse();
                Node::Tuple(items)
            }
        };
        self.push(node);
        Ok(())
    }

    fn extend(&mut self, op: u8) -> Result<()> {
        match op {
            b'a' => {
                let item = self.pop()?;
                self.add_items(vec![item])
            }
            b'e' | 0x90 => {
                let items = self.pop_to_mark()?;
                self.add_items(items)
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.add_pairs(vec![(key, value)])
            }
            _ => {
                let pairs = self.pop_pairs()?;
                self.add_pairs(pairs)
            }
        }
    }

    fn add_items(&mut self, items: Vec<Id>) -> Result<()> {
        let target = self.top()?;
        match &mut self.nodes[target] {
            Node::List(list) => list.extend(items),
            // A list subclass read as a record: items keep their place as argument.
            Node::Object { args, .. } => args.extend(items),
            _ => return Err(self.error("adds items to something that is no list")),
        }
        Ok(())
    }

    fn add_pairs(&mut self, pairs: Vec<(Id, Id)>) -> Result<()> {
        let target = self.top()?;
        match &mut self.nodes[target] {
            Node::Dict(entries)
            | Node::Object {
                fields: entries, ..
            } => entries.extend(pairs),
            _ => return Err(self.error("adds entries to something that is no dictionary")),
        }
        Ok(())
    }

    fn remember(&mut self, op: u8) -> Result<()> {
        let key = match op {
            b'p' => self.memo_line()?,
            b'q' => self.cursor.u8("memo number")?.into(),
            b'r' => self.cursor.u32("memo number")?.into(),
            _ => self.memo.len() as u64,
        };
        let id = self.top()?;
        self.memo.insert(key, id);
        Ok(())
    }

    fn memo_line(&mut self) -> Result<u64> {
        let line = self.line()?;
        line.parse()
            .map_err(|_| self.error(format!("bad memo number {line:?}")))
    }

    fn recall(&mut self, op: u8) -> Result<()> {
        let key = match op {
            b'g' => self.memo_line()?,
            b'h' => self.cursor.u8("memo number")?.into(),
            _ => self.cursor.u32("memo number")?.into(),
        };
        let Some(&id) = self.memo.get(&key) else {
            return Err(self.error(format!("recalls number {key}, which was not stored")));
        };
        self.stack.push(id);
        Ok(())
    }

    fn global(&mut self, op: u8) -> Result<()> {
        let (module, name) = if op == b'c' {
            (self.line()?, self.line()?)
        } else {
            let (name, module) = (self.pop()?, self.pop()?);
            (self.text(module)?, self.text(name)?)
        };
        let class = self
            .allow
            .check(&module, &name)
            .map_err(|class| Error::UnknownClass {
                path: self.cursor.path.to_owned(),
                class,
            })?;
        self.push(Node::Class(class));
        Ok(())
    }

    fn persistent(&mut self, op: u8) -> Result<()> {
        if op == b'P' {
            return Err(self.error("refers to an object outside the file"));
        }
        let id = self.pop()?;
        let storage = self.storage(id)?;
        self.push(Node::Storage(storage));
        Ok(())
    }

    fn construct(&mut self, op: u8) -> Result<()> {
        // NEWOBJ_EX has keyword arguments on top.
        let keywords = if op == 0x92 { Some(self.pop()?) } else { None };
        let args = self.pop()?;
        let callee = self.pop()?;
        let Node::Class(class) = &self.nodes[callee] else {
            return Err(self.error("calls something that is no class"));
        };
        let class = class.clone();
        let args = self.items(args)?;
        let id = self.call(&class, args)?;
        if let Some(keywords) = keywords {
            self.set_state(id, keywords)?;
        }
        self.stack.push(id);
        Ok(())
    }

    /// Items of a tuple or list.
    pub fn items(&self, id: Id) -> Result<Vec<Id>> {
        match &self.nodes[id] {
            Node::Tuple(items) | Node::List(items) => Ok(items.clone()),
            _ => Err(self.error("expected a tuple")),
        }
    }

    pub fn text(&self, id: Id) -> Result<String> {
        match &self.nodes[id] {
            Node::Text(bytes) | Node::Raw(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(text.to_owned()),
                Err(_) => Err(self.error("text is not UTF-8")),
            },
            _ => Err(self.error("expected text")),
        }
    }

    pub fn size(&self, id: Id) -> Result<usize> {
        match self.nodes[id] {
            Node::Int(i) => {
                usize::try_from(i).map_err(|_| self.error(format!("{i} is not a size")))
            }
            _ => Err(self.error("expected a size")),
        }
    }

    pub fn sizes(&self, id: Id) -> Result<Vec<usize>> {
        self.items(id)?.into_iter().map(|d| self.size(d)).collect()
    }
}

/// Little-endian two's complement of up to 16 bytes.
fn signed(bytes: &[u8]) -> Option<i128> {
    if bytes.len() > 16 {
        return None;
    }
    let fill = match bytes.last() {
        Some(top) if top & 0x80 != 0 => 0xff,
        _ => 0,
    };
    let mut all = [fill; 16];
    all[..bytes.len()].copy_from_slice(bytes);
    Some(i128::from_le_bytes(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_integers_keep_their_sign() {
        assert_eq!(signed(&[]), Some(0));
        assert_eq!(signed(&[0xff]), Some(-1));
        assert_eq!(signed(&[0xff, 0]), Some(255));
        assert_eq!(signed(&[0; 17]), None);
    }
}
