//! Tokens and costs of a session, by model. Pure, except [`AuxiliaryUsage`], to which requests outside of the conversation
//! add.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use zeph_llm::{EmbeddingModel, LlmProvider, Prices, Usage, Usd};
use zeph_memory::StoredSpending;

use crate::config::AgentConfig;

/// The number of requests, their tokens and their cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageCost {
    /// Requests that got a response.
    pub requests: u64,
    /// Their tokens.
    pub usage: Usage,
    /// The cost of the requests with a known price.
    pub cost: Usd,
    /// Requests with an unknown price.
    pub unpriced: u64,
}

impl UsageCost {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.usage.add(other.usage);
        self.cost = self.cost.plus(other.cost);
        self.unpriced += other.unpriced;
    }

    /// The cost; `None` if the price of a request is unknown.
    #[must_use]
    pub fn known_cost(&self) -> Option<Usd> {
        (self.unpriced == 0).then_some(self.cost)
    }

    /// Input and output tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let Usage {
            input_tokens,
            output_tokens,
            ..
        } = self.usage;
        input_tokens.saturating_add(output_tokens)
    }
}

/// A provider's name and its model.
type Model = (String, String);

/// Costs by provider and model, in the order of their first requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spending(Vec<(Model, UsageCost)>);

impl Spending {
    /// Adds a request that `provider` answered.
    pub fn add(&mut self, provider: &dyn LlmProvider, usage: Usage) {
        self.add_priced(provider.name(), provider.model(), provider.prices(), usage);
    }

    fn add_priced(&mut self, provider: &str, model: &str, prices: Option<Prices>, usage: Usage) {
        let spent = UsageCost {
            requests: 1,
            usage,
            cost: prices.map(|prices| prices.cost(usage)).unwrap_or_default(),
            unpriced: u64::from(prices.is_none()),
        };
        self.count((provider.to_owned(), model.to_owned()), &spent);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: Self) {
        for (model, spent) in other.0 {
            self.count(model, &spent);
        }
    }

    fn count(&mut self, model: Model, spent: &UsageCost) {
        match self.0.iter_mut().find(|(known, _)| *known == model) {
            Some((_, sum)) => sum.add(spent),
            None => self.0.push((model, spent.clone())),
        }
    }

    /// The sum over all models.
    #[must_use]
    pub fn total(&self) -> UsageCost {
        let mut total = UsageCost::default();
        for (_, spent) in &self.0 {
            total.add(spent);
        }
        total
    }

    /// Converts stored rows.
    #[must_use]
    pub fn of_stored(rows: Vec<StoredSpending>) -> Self {
        let mut spending = Self::default();
        for row in rows {
            let spent = UsageCost {
                requests: row.requests,
                usage: Usage {
                    input_tokens: row.input_tokens,
                    output_tokens: row.output_tokens,
                    cached_tokens: row.cached_tokens,
                    cache_write_tokens: row.cache_write_tokens,
                },
                cost: Usd::from_nanos(row.cost_nanos),
                unpriced: row.unpriced,
            };
            spending.count((row.provider, row.model), &spent);
        }
        spending
    }

    /// Converts to rows for the store.
    #[must_use]
    pub fn to_stored(&self) -> Vec<StoredSpending> {
        let row = |((provider, model), spent): &(Model, UsageCost)| StoredSpending {
            provider: provider.clone(),
            model: model.clone(),
            requests: spent.requests,
            input_tokens: spent.usage.input_tokens,
            output_tokens: spent.usage.output_tokens,
            cached_tokens: spent.usage.cached_tokens,
            cache_write_tokens: spent.usage.cache_write_tokens,
            cost_nanos: spent.cost.nanos(),
            unpriced: spent.unpriced,
        };
        self.0.iter().map(row).collect()
    }

    /// The report for the user: a line for each model, and one for the sum.
    #[must_use]
    pub fn report(&self) -> String {
        if self.0.is_empty() {
            return "no request was sent to a model yet".to_owned();
        }
        let mut text = String::new();
        for ((provider, model), spent) in &self.0 {
            // Writing into a string cannot fail.
            let _ = writeln!(text, "{provider} ({model}): {}", line(spent));
        }
        let total = self.total();
        let _ = write!(text, "together: {}", line(&total));
        if total.unpriced > 0 {
            text.push_str(
                "\nthe cost of a request is known if its provider has prices: prices = { input = \
                 …, output = … } in [[llm.providers]], USD for a million tokens",
            );
        }
        text
    }

    /// The reason why the budget allows no further request; `None` if it allows one.
    #[must_use]
    pub fn over_budget(&self, config: &AgentConfig) -> Option<String> {
        let total = self.total();
        if let Some(max) = config.max_tokens_per_session
            && total.tokens() >= max
        {
            return Some(format!(
                "stopped: this session took {} tokens of {max} ([agent] max_tokens_per_session)",
                total.tokens()
            ));
        }
        let max = config.max_cost_usd?;
        if total.unpriced > 0 {
            return Some(format!(
                "stopped: the cost of {} requests of this session is unknown, and the limit is \
                 {max} ([agent] max_cost_usd); start a new session",
                total.unpriced
            ));
        }
        (total.cost >= max).then(|| {
            format!(
                "stopped: this session cost {} of {max} ([agent] max_cost_usd)",
                total.cost
            )
        })
    }

    /// The used part of each budget, one line each; empty without a budget.
    #[must_use]
    pub fn budget(&self, config: &AgentConfig) -> Vec<String> {
        let total = self.total();
        let cost = config
            .max_cost_usd
            .map(|max| format!("budget: {} of {max} ([agent] max_cost_usd)", total.cost));
        let tokens = config.max_tokens_per_session.map(|max| {
            format!(
                "budget: {} of {max} tokens ([agent] max_tokens_per_session)",
                total.tokens()
            )
        });
        cost.into_iter().chain(tokens).collect()
    }
}

fn line(spent: &UsageCost) -> String {
    let Usage {
        input_tokens,
        output_tokens,
        cached_tokens,
        cache_write_tokens,
    } = spent.usage;
    let plural = if spent.requests == 1 { "" } else { "s" };
    let cost = match (spent.known_cost(), spent.unpriced < spent.requests) {
        (Some(cost), _) => cost.to_string(),
        (None, true) => format!(
            "at least {} ({} requests of unknown price)",
            spent.cost, spent.unpriced
        ),
        (None, false) => "price unknown".to_owned(),
    };
    format!(
        "{} request{plural}, {input_tokens} tokens in ({cached_tokens} cached, {cache_write_tokens} written to the \
         cache), {output_tokens} out, {cost}",
        spent.requests
    )
}

/// Costs of requests outside of the conversation: the judge of calls, the repair of arguments, and embeddings. They are
/// added to the turn in which the requests end.
#[derive(Debug, Default)]
pub struct AuxiliaryUsage(Mutex<Spending>);

impl AuxiliaryUsage {
    /// Adds a request that `provider` answered.
    pub fn add(&self, provider: &dyn LlmProvider, usage: Usage) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sum.add(provider, usage);
    }

    /// Adds embeddings by `model` of `provider`.
    pub fn add_embeddings(&self, provider: &str, model: &EmbeddingModel, usage: Usage) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sum.add_priced(provider, &model.name, model.prices, usage);
    }

    /// Adds all of `spent`.
    pub fn merge(&self, spent: Spending) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sum.merge(spent);
    }

    /// Returns the costs since the last call of [`AuxiliaryUsage::take`], and retains them.
    #[must_use]
    pub fn pending(&self) -> Spending {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the costs since the last call of this method.
    #[must_use]
    pub fn take(&self) -> Spending {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(model: &str, tokens: u64, nanos: u64, unpriced: u64) -> StoredSpending {
        StoredSpending {
            provider: "p".to_owned(),
            model: model.to_owned(),
            requests: 2,
            input_tokens: tokens,
            output_tokens: 1,
            cached_tokens: 3,
            cache_write_tokens: 4,
            cost_nanos: nanos,
            unpriced,
        }
    }

    /// Proves LLM-11: sums by model, also with unknown prices.
    #[test]
    fn sums_are_reported_by_model() {
        let rows = vec![stored("a", 100, 1_500_000, 0), stored("b", 10, 0, 2)];
        let mut spending = Spending::of_stored(rows.clone());
        assert_eq!(spending.to_stored(), rows);
        spending.merge(Spending::of_stored(vec![stored("a", 100, 1_500_000, 0)]));
        let report = spending.report();
        for expect in [
            "p (a): 4 requests, 200 tokens in (6 cached, 8 written to the cache), 2 out, $0.0030\n",
            "p (b): 2 requests, 10 tokens in (3 cached, 4 written to the cache), 1 out, price unknown\n",
            "together: 6 requests, 210 tokens in (9 cached, 12 written to the cache), 3 out, \
             at least $0.0030 (2 requests of unknown price)\n",
            "prices = {",
        ] {
            assert!(report.contains(expect), "{report}");
        }
        assert_eq!(
            Spending::default().report(),
            "no request was sent to a model yet"
        );
    }

    /// Proves LLM-11: a budget of money or tokens.
    #[test]
    fn budget_is_exceeded_at_its_limit() {
        let config = |cost: Option<f64>, tokens| AgentConfig {
            max_cost_usd: cost.and_then(Usd::from_dollars),
            max_tokens_per_session: tokens,
            ..AgentConfig::default()
        };
        let check = |spending: &Spending, config: &AgentConfig, expect: &str| {
            let found = spending.over_budget(config).unwrap_or_default();
            assert_eq!(found.is_empty(), expect.is_empty(), "{found}");
            assert!(found.contains(expect), "{found}");
        };
        let spending = Spending::of_stored(vec![stored("a", 99, 10_000_000, 0)]);
        check(&spending, &config(None, None), "");
        check(&spending, &config(Some(0.010_000_001), Some(101)), "");
        let over = "cost $0.0100 of $0.0100 ([agent] max_cost_usd)";
        check(&spending, &config(Some(0.01), None), over);
        let over = "100 tokens of 100 ([agent] max_tokens_per_session)";
        check(&spending, &config(None, Some(100)), over);
        let unknown = Spending::of_stored(vec![stored("a", 99, 0, 1)]);
        let over = "the cost of 1 requests of this session is unknown";
        check(&unknown, &config(Some(5.0), None), over);
        check(&unknown, &config(None, Some(1000)), "");
        check(
            &Spending::default(),
            &config(Some(0.0), None),
            "max_cost_usd",
        );
        assert_eq!(spending.budget(&config(None, None)), Vec::<String>::new());
        assert_eq!(
            spending.budget(&config(Some(1.0), Some(200))),
            [
                "budget: $0.0100 of $1.00 ([agent] max_cost_usd)",
                "budget: 100 of 200 tokens ([agent] max_tokens_per_session)",
            ]
        );
    }
}
