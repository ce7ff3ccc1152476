//! The cost of telemetry: read turns of a binary without the feature `otel`, of one with it, and of the same one with a
//! collector on loopback.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result, ensure};

use super::model::{Answer, BUFFER, next_request};
use super::report::{Figure, Unit, median};
use super::subject::{Home, Run};

/// The number of rounds. The runs of a round follow each other, so that a disturbance affects all of them.
const ROUNDS: usize = 15;

/// A kind of run.
#[derive(Clone, Copy)]
enum Kind {
    /// The feature is not built in.
    Absent,
    /// No endpoint is set.
    Off,
    /// The collector gets spans and metrics.
    On,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Absent, Self::Off, Self::On];

    fn name(self) -> &'static str {
        match self {
            Self::Absent => "without the feature",
            Self::Off => "without an endpoint",
            Self::On => "with an export",
        }
    }
}

/// The times of a run, in milliseconds.
#[derive(Clone, Copy, Default)]
struct Times {
    /// The median of its turns.
    turn: f64,
    /// The processor time from start to exit, with the last data for the collector.
    processor: f64,
}

impl Times {
    fn of(run: &Run) -> Self {
        Self {
            turn: median(&run.turns()),
            processor: run.processor.as_secs_f64() * 1e3,
        }
    }
}

/// Measures turns of the script that `reads` makes for a home.
pub(super) fn measure(
    without: &Path,
    with: &Path,
    reads: impl Fn(&Home) -> Result<Vec<Answer>>,
    figures: &mut Vec<Figure>,
) -> Result<()> {
    let collector = Collector::start()?;
    let endpoint = format!("http://{}", collector.address);
    let on = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str())];
    let homes = [Home::new()?, Home::new()?, Home::new()?];
    let mut rounds = [[Times::default(); 3]; ROUNDS];
    for (nth, round) in rounds.iter_mut().enumerate() {
        // Each kind is first in a third of the rounds.
        for at in 0..Kind::ALL.len() {
            let kind = Kind::ALL[(nth + at) % Kind::ALL.len()];
            let home = &homes[kind as usize];
            let (binary, env) = match kind {
                Kind::Absent => (without, &[][..]),
                Kind::Off => (with, &[][..]),
                Kind::On => (with, &on[..]),
            };
            round[kind as usize] = Times::of(&home.run_with(binary, reads(home)?, env)?);
        }
    }
    let requests = collector.requests.load(Ordering::SeqCst);
    ensure!(requests > ROUNDS, "the collector got {requests} requests");
    for (kind, base, target) in [(Kind::Off, Kind::Absent, 1.02), (Kind::On, Kind::Off, 1.05)] {
        let ratios = |time: fn(&Times) -> f64| {
            let pairs = rounds.iter();
            let mut ratios: Vec<f64> = pairs
                .map(|round| time(&round[kind as usize]) / time(&round[base as usize]))
                .collect();
            ratios.sort_by(f64::total_cmp);
            ratios
        };
        for (what, ratios) in [
            ("read turn", ratios(|times| times.turn)),
            ("processor time", ratios(|times| times.processor)),
        ] {
            figures.push(
                Figure::new(
                    format!("{what} {}, over {}", kind.name(), base.name()),
                    Unit::Ratio,
                    ratios[ROUNDS / 2],
                )
                .at_most(target)
                .beside("least of the rounds", ratios[0])
                .beside("most", ratios[ROUNDS - 1]),
            );
        }
    }
    Ok(())
}

/// A collector that accepts everything. It ends when it is dropped.
struct Collector {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("a listener on loopback")?;
        let address = listener.local_addr()?;
        let (requests, is_stopped) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (counted, stopped) = (Arc::clone(&requests), Arc::clone(&is_stopped));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let counted = Arc::clone(&counted);
                if let Ok(stream) = stream {
                    // The thread ends with the connection.
                    std::thread::spawn(move || drop(accept(stream, &counted)));
                }
            }
        });
        Ok(Self {
            address,
            requests,
            is_stopped,
            thread: Some(thread),
        })
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(mut stream: TcpStream, requests: &AtomicUsize) -> Result<()> {
    let mut buffer = vec![0; BUFFER];
    while next_request(&mut stream, &mut buffer)?.is_some() {
        requests.fetch_add(1, Ordering::SeqCst);
        stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n",
        )?;
    }
    Ok(())
}
