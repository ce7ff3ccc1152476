//! A measurement of the cost to parse a page, before the actual parse.
//!
//! The HTML algorithm is quadratic in places: each tag may search all open elements, each `</b>` may move a whole
//! subtree, each `<p>` may repeat all open formatting. A malicious page of 250 KB takes a parser most of a
//! minute, and a parser cannot be stopped. So the page first passes through the same algorithm (html5ever) in
//! small pieces, with a tree of names only. The steps are counted, and the time is checked between the pieces.

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};

use html5ever::interface::{Attribute, ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::{ParseOpts, QualName, local_name, ns, parse_document};

use crate::error::PageError;
use crate::limit::PageLimit;

/// The number of bytes between two checks of the counters.
const PIECE: usize = 256;
/// The maximum nesting depth of elements. Browsers have the same limit.
pub(crate) const MAX_DEPTH: usize = 512;
/// The maximum number of steps: about a second of the real parser.
const MAX_STEPS: u64 = 10_000_000;
/// The maximum number of elements of a page; each takes some hundred bytes.
const MAX_ELEMENTS: usize = 200_000;

/// Refuses a page that is too costly to parse.
pub(crate) fn measure(text: &str, limit: &PageLimit) -> Result<(), PageError> {
    let mut parser = parse_document(Counter::new(), ParseOpts::default());
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE));
        rest = after;
        parser.process(StrTendril::from(piece));
        limit.check()?;
        let counter = &parser.tokenizer.sink.sink;
        if counter.deepest.get() > MAX_DEPTH {
            return Err(PageError::TooDeep { limit: MAX_DEPTH });
        }
        if counter.steps.get() > MAX_STEPS || counter.nodes.borrow().len() > MAX_ELEMENTS {
            return Err(PageError::TooCostly);
        }
    }
    Ok(())
}

/// The recorded data of an element.
struct Node {
    name: QualName,
    /// The node for the contents of a `<template>`.
    contents: Option<usize>,
    /// The depth at its insertion into the tree; 0 before.
    depth: usize,
    /// Whether HTML may occur in it although it is MathML.
    integrates: bool,
}

/// A tree of names that counts the steps. Handles are positions in `nodes`; 0 is the document.
struct Counter {
    nodes: RefCell<Vec<Node>>,
    steps: Cell<u64>,
    deepest: Cell<usize>,
}

/// The handle of the document, and of nodes that are not recorded: comments.
const DOCUMENT: usize = 0;

impl Counter {
    fn new() -> Self {
        let counter = Self {
            nodes: RefCell::new(Vec::new()),
            steps: Cell::new(0),
            deepest: Cell::new(0),
        };
        counter.add(QualName::new(None, ns!(), local_name!("")), false);
        counter
    }

    fn add(&self, name: QualName, integrates: bool) -> usize {
        let mut nodes = self.nodes.borrow_mut();
        nodes.push(Node {
            name,
            contents: None,
            depth: 0,
            integrates,
        });
        nodes.len() - 1
    }

    fn step(&self, steps: usize) {
        self.steps.set(self.steps.get() + steps as u64);
    }

    /// Records the insertion of a node below `parent`; a move may take as many steps as there are nodes.
    fn place(&self, parent: usize, child: &NodeOrText<usize>) {
        let NodeOrText::AppendNode(handle) = child else {
            return;
        };
        if *handle == DOCUMENT {
            return;
        }
        let mut nodes = self.nodes.borrow_mut();
        let moves = nodes[*handle].depth > 0;
        self.step(if moves { nodes.len() } else { 1 });
        let depth = nodes[parent].depth + 1;
        nodes[*handle].depth = depth;
        self.deepest.set(self.deepest.get().max(depth));
    }
}

impl TreeSink for Counter {
    type Handle = usize;
    type Output = ();
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) {}

    fn parse_error(&self, _message: Cow<'static, str>) {}

    fn get_document(&self) -> usize {
        DOCUMENT
    }

    fn elem_name<'a>(&'a self, target: &'a usize) -> Ref<'a, QualName> {
        self.step(1);
        // Handles are positions from `add`.
        Ref::map(self.nodes.borrow(), |nodes| &nodes[*target].name)
    }

    fn create_element(&self, name: QualName, _: Vec<Attribute>, flags: ElementFlags) -> usize {
        let handle = self.add(name.clone(), flags.mathml_annotation_xml_integration_point);
        if flags.template {
            let contents = self.add(name, false);
            self.nodes.borrow_mut()[handle].contents = Some(contents);
        }
        handle
    }

    fn create_comment(&self, _text: StrTendril) -> usize {
        DOCUMENT
    }

    fn create_pi(&self, _target: StrTendril, _data: StrTendril) -> usize {
        DOCUMENT
    }

    fn append(&self, parent: &usize, child: NodeOrText<usize>) {
        self.place(*parent, &child);
    }

    fn append_based_on_parent_node(
        &self,
        _element: &usize,
        previous: &usize,
        child: NodeOrText<usize>,
    ) {
        self.place(*previous, &child);
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_template_contents(&self, target: &usize) -> usize {
        self.nodes.borrow()[*target].contents.unwrap_or(*target)
    }

    fn same_node(&self, a: &usize, b: &usize) -> bool {
        self.step(1);
        a == b
    }

    fn set_quirks_mode(&self, _mode: QuirksMode) {}

    fn append_before_sibling(&self, _sibling: &usize, child: NodeOrText<usize>) {
        // The depth is unknown here; the real parser checks it.
        self.place(DOCUMENT, &child);
    }

    fn add_attrs_if_missing(&self, _target: &usize, attributes: Vec<Attribute>) {
        self.step(attributes.len());
    }

    fn remove_from_parent(&self, _target: &usize) {
        self.step(1);
    }

    fn reparent_children(&self, _node: &usize, _new_parent: &usize) {
        self.step(self.nodes.borrow().len());
    }

    fn is_mathml_annotation_xml_integration_point(&self, handle: &usize) -> bool {
        self.nodes.borrow()[*handle].integrates
    }
}
