//! The matching of elements against CSS selectors.
//!
//! The parser and nearly all of the matching are from scrape-core. But its elements use the address of a
//! short-lived wrapper as their identity, so that cached results of one element (`:nth-child` counts) are used
//! for another. Here, the node identifies an element; its address is stable for the lifetime of the document.

use scrape_core::Document;
use scrape_core::query::{
    ElementWrapper, NonTSPseudoClass, PseudoElement, ScrapeSelector, parse_selector,
};
use selectors::attr::{AttrSelectorOperation, CaseSensitivity, NamespaceConstraint};
use selectors::bloom::BloomFilter;
use selectors::context::{
    MatchingContext, MatchingForInvalidation, MatchingMode, NeedsSelectorFlags, QuirksMode,
    SelectorCaches,
};
use selectors::matching::{ElementSelectorFlags, matches_selector};
use selectors::parser::SelectorImpl;
use selectors::{Element, OpaqueElement, SelectorList};

use crate::document::{HtmlDocument, HtmlElement};

type Identifier = <ScrapeSelector as SelectorImpl>::Identifier;
type LocalName = <ScrapeSelector as SelectorImpl>::BorrowedLocalName;
type Namespace = <ScrapeSelector as SelectorImpl>::BorrowedNamespaceUrl;
type Value = <ScrapeSelector as SelectorImpl>::AttrValue;

/// The maximum length of a selector in bytes.
const MAX_SELECTOR_BYTES: usize = 1024;

/// The error of a text that is not a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// It is too long.
    #[error("the selector has {bytes} bytes; {limit} is the limit")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The maximum length.
        limit: usize,
    },
    /// The parser refuses it.
    #[error("{text:?} is no CSS selector: {reason}")]
    Invalid {
        /// The text.
        text: String,
        /// The reason of the parser.
        reason: String,
    },
}

/// A list of CSS selectors.
#[derive(Debug)]
pub struct CssSelector(SelectorList<ScrapeSelector>);

impl CssSelector {
    /// Parses a selector.
    ///
    /// # Errors
    /// [`SelectorError`] if it is too long or not a selector.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MAX_SELECTOR_BYTES {
            return Err(SelectorError::TooLong {
                bytes: text.len(),
                limit: MAX_SELECTOR_BYTES,
            });
        }
        let parsed = parse_selector(text);
        parsed.map(Self).map_err(|error| SelectorError::Invalid {
            text: text.to_owned(),
            reason: error.to_string(),
        })
    }

    /// Creates a matcher for the elements of a document.
    #[must_use]
    pub fn matcher<'a>(&'a self, document: &'a HtmlDocument) -> SelectorMatcher<'a> {
        SelectorMatcher {
            selector: self,
            document: document.tree(),
            caches: SelectorCaches::default(),
        }
    }
}

/// A matcher for the elements of a document, with caches.
pub struct SelectorMatcher<'a> {
    selector: &'a CssSelector,
    document: &'a Document,
    caches: SelectorCaches,
}

impl SelectorMatcher<'_> {
    /// Whether an element of the document matches.
    pub fn matches(&mut self, element: &HtmlElement<'_>) -> bool {
        let element = Identified(ElementWrapper::new(self.document, element.id()));
        let mut context = MatchingContext::new(
            MatchingMode::Normal,
            None,
            &mut self.caches,
            QuirksMode::NoQuirks,
            NeedsSelectorFlags::No,
            MatchingForInvalidation::No,
        );
        let mut all = self.selector.0.slice().iter();
        all.any(|selector| matches_selector(selector, 0, None, &element, &mut context))
    }
}

/// An element that is identified by its node.
#[derive(Debug, Clone, PartialEq)]
struct Identified<'a>(ElementWrapper<'a>);

impl Element for Identified<'_> {
    type Impl = ScrapeSelector;

    fn opaque(&self) -> OpaqueElement {
        match self.0.document().get(self.0.node_id()) {
            Some(node) => OpaqueElement::new(node),
            None => OpaqueElement::new(self),
        }
    }

    fn parent_element(&self) -> Option<Self> {
        self.0.parent_element().map(Self)
    }

    fn parent_node_is_shadow_root(&self) -> bool {
        self.0.parent_node_is_shadow_root()
    }

    fn containing_shadow_host(&self) -> Option<Self> {
        self.0.containing_shadow_host().map(Self)
    }

    fn is_pseudo_element(&self) -> bool {
        self.0.is_pseudo_element()
    }

    fn prev_sibling_element(&self) -> Option<Self> {
        self.0.prev_sibling_element().map(Self)
    }

    fn next_sibling_element(&self) -> Option<Self> {
        self.0.next_sibling_element().map(Self)
    }

    fn first_element_child(&self) -> Option<Self> {
        self.0.first_element_child().map(Self)
    }

    fn is_html_element_in_html_document(&self) -> bool {
        self.0.is_html_element_in_html_document()
    }

    fn has_local_name(&self, name: &LocalName) -> bool {
        self.0.has_local_name(name)
    }

    fn has_namespace(&self, namespace: &Namespace) -> bool {
        self.0.has_namespace(namespace)
    }

    fn is_same_type(&self, other: &Self) -> bool {
        self.0.is_same_type(&other.0)
    }

    fn attr_matches(
        &self,
        namespace: &NamespaceConstraint<&Namespace>,
        name: &LocalName,
        operation: &AttrSelectorOperation<&Value>,
    ) -> bool {
        self.0.attr_matches(namespace, name, operation)
    }

    fn match_non_ts_pseudo_class(
        &self,
        class: &NonTSPseudoClass,
        context: &mut MatchingContext<'_, ScrapeSelector>,
    ) -> bool {
        self.0.match_non_ts_pseudo_class(class, context)
    }

    fn match_pseudo_element(
        &self,
        element: &PseudoElement,
        context: &mut MatchingContext<'_, ScrapeSelector>,
    ) -> bool {
        self.0.match_pseudo_element(element, context)
    }

    fn apply_selector_flags(&self, flags: ElementSelectorFlags) {
        self.0.apply_selector_flags(flags);
    }

    fn is_link(&self) -> bool {
        self.0.is_link()
    }

    fn is_html_slot_element(&self) -> bool {
        self.0.is_html_slot_element()
    }

    fn has_id(&self, id: &Identifier, case: CaseSensitivity) -> bool {
        self.0.has_id(id, case)
    }

    fn has_class(&self, name: &Identifier, case: CaseSensitivity) -> bool {
        self.0.has_class(name, case)
    }

    fn has_custom_state(&self, name: &Identifier) -> bool {
        self.0.has_custom_state(name)
    }

    fn imported_part(&self, name: &Identifier) -> Option<Identifier> {
        self.0.imported_part(name)
    }

    fn is_part(&self, name: &Identifier) -> bool {
        self.0.is_part(name)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn is_root(&self) -> bool {
        self.0.is_root()
    }

    fn add_element_unique_hashes(&self, filter: &mut BloomFilter) -> bool {
        self.0.add_element_unique_hashes(filter)
    }
}
