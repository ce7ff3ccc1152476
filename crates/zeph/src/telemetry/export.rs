//! The export: a bounded queue of spans and a reader of metrics, each with a thread of its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, Protocol, RetryPolicy, SpanExporter, WithExportConfig as _,
    WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider};
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::Registry;
use tracing_subscriber::reload;
use uuid::Uuid;

use super::attributes::Limited;
use super::client::{Link, REQUEST_LIMIT, Sender};
use super::collector::Collector;
use super::metrics::Metrics;

/// The name of the service, unless the environment sets another one.
const SERVICE: &str = "zeph";
const SERVICE_NAME: &str = "service.name";
/// The value of [`SERVICE_NAME`] if nothing sets it.
const UNKNOWN_SERVICE: &str = "unknown_service";
/// The number of ended spans that wait for the collector. More are dropped.
const MAX_QUEUE: usize = 2048;
/// The maximum wait for the last data at the end of the process.
const LAST_FLUSH: Duration = Duration::from_millis(1500);

type Boxed = Box<dyn Layer<Registry> + Send + Sync>;
type Slot = reload::Handle<Option<Boxed>, Registry>;

/// The place in the subscriber for the layer that makes spans.
static SLOT: OnceLock<Slot> = OnceLock::new();
/// Whether spans are exported.
static IS_ON: AtomicBool = AtomicBool::new(false);
static EXPORT: OnceLock<Export> = OnceLock::new();

struct Export {
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
    link: Arc<Link>,
}

/// The layer for the subscriber of the process. It does nothing until [`start`].
pub(crate) fn layer() -> Boxed {
    let (layer, slot) = reload::Layer::new(None::<Boxed>);
    let _ = SLOT.set(slot);
    let filter = filter_fn(is_exported).with_max_level_hint(LevelFilter::DEBUG);
    layer.with_filter(filter).boxed()
}

/// Spans of Zeph. Events are log records, which are not exported.
fn is_exported(metadata: &Metadata<'_>) -> bool {
    IS_ON.load(Ordering::Relaxed)
        && metadata.is_span()
        && metadata.target().starts_with("zeph")
        && *metadata.level() <= Level::DEBUG
}

/// Starts the export to a collector.
///
/// # Errors
/// The reason why it cannot start, for example an option in the environment that is not supported.
pub(super) fn start(collector: &Collector) -> Result<(), String> {
    let Some(slot) = SLOT.get() else {
        return Ok(());
    };
    let link = Link::new(collector.shown());
    let (traces, metrics) = providers(collector, &link).map_err(|error| error.to_string())?;
    let tracer = traces.tracer(SERVICE);
    let spans = tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_level(false)
        .with_tracked_inactivity(false);
    IS_ON.store(true, Ordering::Relaxed);
    let _ = EXPORT.set(Export {
        traces,
        metrics,
        link,
    });
    slot.reload(Some(spans.boxed()))
        .map_err(|error| error.to_string())
}

fn providers(
    collector: &Collector,
    link: &Arc<Link>,
) -> Result<(SdkTracerProvider, SdkMeterProvider), ExporterBuildError> {
    let headers: HashMap<String, String> = collector.headers.clone().into_iter().collect();
    let at = |path: &str| format!("{}{path}", collector.endpoint);
    let spans = SpanExporter::builder()
        .with_http()
        .with_http_client(Sender::new(Arc::clone(link)))
        .with_headers(headers.clone())
        .with_retry_policy(RetryPolicy::disabled())
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(REQUEST_LIMIT)
        .with_endpoint(at("/v1/traces"))
        .build()?;
    let numbers = MetricExporter::builder()
        .with_http()
        .with_http_client(Sender::new(Arc::clone(link)))
        .with_headers(headers)
        .with_retry_policy(RetryPolicy::disabled())
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(REQUEST_LIMIT)
        .with_endpoint(at("/v1/metrics"))
        .build()?;
    let resource = resource();
    let metrics = SdkMeterProvider::builder()
        .with_reader(PeriodicReader::builder(numbers).build())
        .with_resource(resource.clone())
        .build();
    let queue = BatchConfigBuilder::default()
        .with_max_queue_size(MAX_QUEUE)
        .build();
    let limited = Limited {
        inner: spans,
        content: collector.content,
    };
    let batches = BatchSpanProcessor::builder(limited).with_batch_config(queue);
    let traces = SdkTracerProvider::builder()
        .with_span_processor(Metrics::new(&metrics.meter(SERVICE)))
        .with_span_processor(batches.build())
        .with_resource(resource)
        .build();
    Ok((traces, metrics))
}

/// The description of this process. Each process is an instance, so that metrics of several ones do not mix.
fn resource() -> Resource {
    let own = [
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", Uuid::new_v4().to_string()),
    ];
    let found = Resource::builder().with_attributes(own).build();
    let name = found.get(&SERVICE_NAME.into());
    let is_named = name.is_some_and(|name| !name.as_str().starts_with(UNKNOWN_SERVICE));
    match is_named {
        true => found,
        false => Resource::builder()
            .with_attributes(
                found
                    .iter()
                    .map(|(key, value)| KeyValue::new(key.clone(), value.clone())),
            )
            .with_service_name(SERVICE)
            .build(),
    }
}

/// Sends the last data. It waits for a short time only, and not at all if the collector does not respond.
pub(crate) fn finish() {
    let Some(export) = EXPORT.get() else { return };
    if export.link.is_failing() {
        return;
    }
    let end = Instant::now() + LAST_FLUSH;
    let (sender, done) = mpsc::channel();
    let traces = sender.clone();
    std::thread::spawn(move || {
        let _ = export.traces.shutdown_with_timeout(LAST_FLUSH);
        let _ = traces.send(());
    });
    std::thread::spawn(move || {
        let _ = export.metrics.shutdown_with_timeout(LAST_FLUSH);
        let _ = sender.send(());
    });
    for _ in 0..2 {
        let left = end.saturating_duration_since(Instant::now());
        if done.recv_timeout(left).is_err() {
            return;
        }
    }
}
