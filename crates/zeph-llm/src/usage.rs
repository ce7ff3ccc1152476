//! The tokens of a request and their cost.
//!
//! Amounts of money are whole billionths of a dollar, so that sums are exact.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Billionths in a dollar.
const NANOS: u32 = 1_000_000_000;
/// The number of tokens to which a price applies.
const PER: u128 = 1_000_000;
/// The maximum amount in dollars.
const MAX_USD: f64 = 1e9;

/// Tokens of one request, as the provider counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// The part of `input_tokens` that came from the provider's cache.
    pub cached_tokens: u64,
    /// The part of `input_tokens` that was written to the provider's cache, if the server reports it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Adds another request's tokens.
    pub fn add(&mut self, other: Usage) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cached_tokens += other.cached_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
    }
}

/// An amount of money: whole billionths of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(u64);

impl Usd {
    /// An amount of billionths of a dollar.
    #[must_use]
    pub fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// `dollars`, to the nearest billionth; `None` below zero, above a billion, and for NaN.
    #[must_use]
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        (0.0..=MAX_USD).contains(&dollars).then(|| {
            // In range, as was just checked.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let nanos = (dollars * f64::from(NANOS)).round() as u64;
            Self(nanos)
        })
    }

    /// Billionths of a dollar.
    #[must_use]
    pub fn nanos(self) -> u64 {
        self.0
    }

    /// Returns the amount in dollars, for JSON output.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "it is rounded to be read")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / f64::from(NANOS)
    }

    /// Returns the sum of both amounts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// `$1.25`, `$0.0034`: two decimal places, four below a dollar, rounded up.
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = u64::from(NANOS);
        if self.0 < nanos {
            let parts = self.0.div_ceil(nanos / 10_000);
            return write!(f, "${}.{:04}", parts / 10_000, parts % 10_000);
        }
        let cents = self.0.div_ceil(nanos / 100);
        write!(f, "${}.{:02}", cents / 100, cents % 100)
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        Self::from_dollars(dollars)
            .ok_or_else(|| D::Error::custom("expected US dollars, from 0 to 1000000000"))
    }
}

impl JsonSchema for Usd {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Usd".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0 })
    }
}

/// Prices of a model: US dollars for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Tokens read: USD for a million.
    pub input: Usd,
    /// Tokens written: USD for a million.
    pub output: Usd,
    /// Tokens read from the provider's cache; as `input` without a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<Usd>,
    /// Tokens read and written to the provider's cache; as `input` without a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Usd>,
}

impl Prices {
    /// The cost of these tokens, rounded up to a billionth of a dollar.
    #[must_use]
    pub fn cost(&self, usage: Usage) -> Usd {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let written = usage.cache_write_tokens.min(usage.input_tokens - cached);
        let plain = usage.input_tokens - cached - written;
        let sum: u128 = [
            (plain, self.input),
            (cached, self.cached_input.unwrap_or(self.input)),
            (written, self.cache_write.unwrap_or(self.input)),
            (usage.output_tokens, self.output),
        ]
        .into_iter()
        .map(|(tokens, price)| u128::from(tokens) * u128::from(price.0))
        .fold(0, u128::saturating_add);
        Usd(u64::try_from(sum.div_ceil(PER)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    fn prices(input: f64, output: f64, cached: Option<f64>, write: Option<f64>) -> Prices {
        let usd = |dollars| Usd::from_dollars(dollars).unwrap();
        Prices {
            input: usd(input),
            output: usd(output),
            cached_input: cached.map(usd),
            cache_write: write.map(usd),
        }
    }

    fn usage(input: u64, output: u64, cached: u64, written: u64) -> Usage {
        Usage {
            input_tokens: input,
            output_tokens: output,
            cached_tokens: cached,
            cache_write_tokens: written,
        }
    }

    /// Proves LLM-11: each kind of token has its own price.
    #[test]
    fn tokens_have_their_prices() {
        let check = |prices: Prices, usage: Usage, nanos: u64| {
            assert_eq!(prices.cost(usage).nanos(), nanos, "{usage:?}");
        };
        let sonnet = prices(3.0, 15.0, Some(0.3), Some(3.75));
        check(sonnet, usage(1_000_000, 0, 0, 0), 3_000_000_000);
        check(sonnet, usage(1000, 10, 0, 0), 3_150_000);
        check(
            sonnet,
            usage(1000, 10, 600, 300),
            300_000 + 180_000 + 1_125_000 + 150_000,
        );
        check(prices(2.0, 8.0, None, None), usage(10, 1, 5, 5), 28_000);
        // If more tokens are cached than read, the cost is not negative.
        check(sonnet, usage(10, 0, 100, 100), 3000);
        check(prices(0.000_000_001, 0.0, None, None), usage(1, 0, 0, 0), 1);
        let most = usage(u64::MAX, u64::MAX, 0, 0);
        check(prices(0.0, 0.0, None, None), most, 0);
        check(prices(1e9, 1e9, None, None), most, u64::MAX);
    }

    #[test]
    fn money_is_shown_rounded_up() {
        let check = |nanos, expect: &str| assert_eq!(Usd(nanos).to_string(), expect);
        check(0, "$0.0000");
        check(1, "$0.0001");
        check(3_150_000, "$0.0032");
        check(999_999_999, "$1.0000");
        check(1_000_000_000, "$1.00");
        check(12_345_678_900, "$12.35");
    }

    proptest! {
        /// The sum of the parts equals the cost of the whole, except for one billionth of rounding per part.
        #[test]
        fn sums_of_money_are_exact(parts in prop::collection::vec((0..1_000_000_u64, 0..1_000_000_u64), 1..20)) {
            let prices = prices(0.123, 4.567, None, None);
            let (mut whole, mut sum) = (Usage::default(), Usd::default());
            for (input, output) in &parts {
                whole.add(usage(*input, *output, 0, 0));
                sum = sum.plus(prices.cost(usage(*input, *output, 0, 0)));
            }
            let cost = prices.cost(whole);
            prop_assert!(cost <= sum && sum.nanos() <= cost.nanos() + parts.len() as u64);
        }

        #[test]
        fn dollars_are_parsed_exactly(nanos in 0..1_000_000_000_000_u64) {
            prop_assert_eq!(Usd::from_dollars(Usd(nanos).dollars()), Some(Usd(nanos)));
        }
    }
}
