//! The command line: where the settings are, and flags for what one changes on a first try.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::config::{Config, Listen, Workers};

/// Switchboard's data plane: sends each request to the model that its Objective decides on.
#[derive(Clone, Debug, Parser)]
#[command(name = "switchboard-router", version)]
pub struct Args {
    /// Settings file [default: /etc/switchboard/router.toml if it exists, else built-in defaults].
    #[arg(long, value_name = "FILE", env = "SWITCHBOARD_ROUTER_CONFIG")]
    pub config: Option<PathBuf>,

    /// Flags that win over the settings file.
    #[command(flatten)]
    pub overrides: Overrides,

    /// Check the settings and the trusted keys, bind nothing, and exit.
    #[arg(long)]
    pub check: bool,

    /// Print which core would do what, and exit.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, default_missing_value = "text")]
    pub print_core_map: Option<CoreMapFormat>,

    /// Print an annotated router.toml with every key at its default, and exit.
    #[arg(long)]
    pub print_example_config: bool,

    /// Something else than serving.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Something else than serving.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Look at the records that wait on disk. Only reads, so a router may be running.
    Spool {
        /// What to do.
        #[command(subcommand)]
        look: SpoolLook,
    },
}

/// How to look at a spool.
#[derive(Clone, Debug, Subcommand)]
pub enum SpoolLook {
    /// Print every complete record as one line of JSON, oldest first; see docs/shadow.md.
    Dump {
        /// Folder of the spool [default: `spool` in the state folder].
        folder: Option<PathBuf>,
    },
    /// Compare every record's checksum and count.
    Verify {
        /// Folder of the spool [default: `spool` in the state folder].
        folder: Option<PathBuf>,
    },
}

/// How `--print-core-map` prints.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum CoreMapFormat {
    /// A line per thread.
    Text,
    /// One JSON object.
    Json,
}

/// Flags that win over the settings file. A list replaces the file's list.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Overrides {
    /// Where clients connect: HOST:PORT, [IPV6]:PORT or unix:/path; repeatable.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<Listen>,

    /// Address of health, readiness and metrics.
    #[arg(long, value_name = "ADDRESS")]
    pub admin_listen: Option<SocketAddr>,

    /// Network threads: a number or `auto`.
    #[arg(long, value_name = "N|auto")]
    pub workers: Option<Workers>,

    /// Unix socket that the control plane pushes to.
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,

    /// Public key whose Snapshots are accepted, or a file with some; repeatable.
    #[arg(long, value_name = "KEY|FILE")]
    pub trusted_key: Vec<String>,

    /// Folder of the last good Snapshot.
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

/// A setting that a flag replaced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Overridden {
    /// Its dotted key.
    pub(crate) key: &'static str,
    /// The flag.
    pub(crate) flag: &'static str,
}

impl Overrides {
    /// Replaces what the flags name, and tells what that was.
    pub(crate) fn apply(&self, config: &mut Config) -> Vec<Overridden> {
        let mut overridden = Vec::new();
        let mut note = |key, flag| overridden.push(Overridden { key, flag });
        if !self.listen.is_empty() {
            config.listen.clone_from(&self.listen);
            note("listen", "--listen");
        }
        if let Some(address) = self.admin_listen {
            config.admin.listen = address;
            note("admin.listen", "--admin-listen");
        }
        if let Some(workers) = self.workers {
            config.cores.workers = workers;
            note("cores.workers", "--workers");
        }
        if let Some(socket) = &self.socket {
            config.feed.socket.clone_from(socket);
            note("feed.socket", "--socket");
        }
        if !self.trusted_key.is_empty() {
            config.trusted_keys.clone_from(&self.trusted_key);
            note("trusted_keys", "--trusted-key");
        }
        if let Some(folder) = &self.state_dir {
            config.state_dir.clone_from(folder);
            note("state_dir", "--state-dir");
        }
        overridden
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_flag_wins_and_is_named_as_the_origin() {
        let args =
            Args::parse_from(["switchboard-router", "--workers", "3", "--listen", "[::1]:0"]);
        let mut config = Config::default();
        let overridden = args.overrides.apply(&mut config);
        assert_eq!(config.cores.workers, "3".parse().unwrap());
        assert_eq!(config.listen, ["[::1]:0".parse().unwrap()]);
        let flags: Vec<_> = overridden.iter().map(|by| by.flag).collect();
        assert_eq!(flags, ["--listen", "--workers"]);
    }

    #[test]
    fn a_worker_count_out_of_range_is_no_flag_value() {
        for text in ["0", "-1", "1025", "many", ""] {
            let parsed = Args::try_parse_from(["switchboard-router", "--workers", text]);
            assert!(parsed.is_err(), "{text}");
        }
    }

    #[test]
    fn the_core_map_prints_as_text_unless_told() {
        let text = Args::parse_from(["switchboard-router", "--print-core-map"]);
        assert_eq!(text.print_core_map, Some(CoreMapFormat::Text));
        let json = Args::parse_from(["switchboard-router", "--print-core-map=json"]);
        assert_eq!(json.print_core_map, Some(CoreMapFormat::Json));
    }
}
