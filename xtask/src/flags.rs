//! The command line of `cargo xtask`.

use std::path::PathBuf;

xflags::xflags! {
    /// Maintenance commands, which CI runs too.
    cmd xtask {
        /// Everything CI checks, in its order.
        cmd ci {}
        /// Format the code.
        cmd fmt {
            /// Change nothing; fail if a file is not formatted.
            optional --check
        }
        /// Clippy over all targets, warnings are errors.
        cmd lint {}
        /// All tests (with cargo-nextest if installed), then the doc tests.
        cmd test {
            /// Only tests whose name contains this.
            optional filter: String
        }
        /// Check module headers, file sizes, dependency edges, vocabulary and leftovers.
        cmd tidy {
            /// Write the counts of denied terms that have fallen.
            optional --lower-counts
        }
        /// Requirement IDs claimed in specs/ and the tests that cite them.
        cmd specs {
            /// List the tests of each ID.
            optional -v, --verbose
        }
        /// The tests of a store on a PostgreSQL server, which is started for them.
        cmd postgres {}
        /// The tests of completion in zsh and fish, which are installed if they are missing.
        cmd shells {}
        /// Licences, bans and sources of the dependencies.
        cmd deny {}
        /// Build the API documentation and check the book: links, contents, messages and shown files.
        cmd docs {
            /// First draw the pictures of the terminal again (docs/pictures/), and copy shown files into their pages.
            optional --pictures
        }
        /// Measure the release binary against a model on loopback.
        cmd bench {
            /// Measure the debug binary.
            optional --debug
            /// Measure this binary, which is not built.
            optional --binary file: PathBuf
            /// Print JSON.
            optional --json
            /// Fail if a target is missed by more than the tolerance.
            optional --check
            /// The micro-benchmarks of streams, filters, the search for secrets and the gates instead.
            optional --micro
            /// The success rate of the edit engine instead.
            optional --edits
            /// Only the streams on the screen.
            optional --streams
            /// Only the cost of telemetry: this binary has the feature `otel`, and the measured binary does not have it.
            optional --telemetry file: PathBuf
        }
        /// Measure a store on a PostgreSQL server under load, and kill processes of it.
        cmd load {
            /// Measure this binary with the feature `postgres`, which is not built.
            optional --binary file: PathBuf
            /// Number of sessions for each number of processes (200).
            optional --sessions sessions: u32
            /// Only the kills, without the times.
            optional --kills
            /// Number of killed processes, one each second (200).
            optional --rounds rounds: u32
            /// Seed of the choice of processes; each run prints its own.
            optional --seed seed: u64
        }
        /// Run the fuzz targets in sequence, five minutes each.
        cmd fuzz {
            /// Only this target.
            optional target: String
            /// Seconds for each target.
            optional --seconds seconds: u64
        }
        /// Test the binary against real servers with a small real model on loopback; skipped if pip finds no
        /// packages.
        cmd live {}
        /// Test `zeph acp` with the official TypeScript and Python libraries and acpx; it fails without npm and pip.
        cmd acp-clients {}
        /// Test `zeph mcp serve` with the official conformance suite and the official Python client; as above.
        cmd mcp-clients {}
        /// Test the client of MCP servers with the reference server and FastMCP; as above.
        cmd mcp-servers {}
        /// Run the conformance suite of MCP against the client of the built binary; it fails without npm.
        cmd conformance {}
        /// Kill conversations at random points and check that each resumes.
        cmd crash {
            /// Number of conversations (200).
            optional --rounds rounds: u32
            /// Seed of the random points; a failure prints it.
            optional --seed seed: u64
        }
        /// Build the archive of a release for one target, with its checksums and its SBOM (target/dist/).
        cmd dist {
            /// The target; otherwise this machine's.
            optional --target triple: String
            /// Package this binary, which is not built.
            optional --binary file: PathBuf
            /// Instead, check with the debug binary that two archives are equal and that the install script works.
            optional --check
        }
        /// Check the spelling of all prose, names and comments.
        cmd prose {}
        /// Run the examples of the crates and compare their output.
        cmd examples {}
        /// Package every crate, and check the files and the size of each package.
        cmd packages {}
        /// Check the workflow files with actionlint.
        cmd workflows {}
        /// Package every crate, compare the public interfaces, and check the size of the release binary.
        cmd release-check {}
    }
}
