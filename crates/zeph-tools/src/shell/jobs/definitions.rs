//! The definitions of `job_output`, `job_kill` and `job_list`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::def::{Annotations, Availability, CachePolicy, ToolDef};

/// The id of the tool that returns the new output of a job.
pub(in crate::shell) const JOB_OUTPUT: &str = "job_output";
/// The id of the tool that ends a job.
pub(in crate::shell) const JOB_KILL: &str = "job_kill";
/// The id of the tool that lists jobs.
pub(in crate::shell) const JOB_LIST: &str = "job_list";

/// The parameters of `job_output` and of `job_kill`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct JobParams {
    pub(super) job_id: String,
}

/// The parameters of `job_list`: none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParams {}

/// The tool only reads. Its result changes with each call, so it must not be cached.
const LOOK: Annotations = Annotations {
    idempotent: false,
    ..Annotations::READ
};

/// The tool ends processes that the session has started, and changes nothing else.
const END: Annotations = Annotations {
    idempotent: true,
    ..Annotations::SESSION_STATE
};

/// Other accepted names of `job_id`.
const ALIASES: &[(&str, &str)] = &[("id", "job_id"), ("job", "job_id")];

/// The definitions of the three tools. They become available when a result mentions [`JOB_OUTPUT`].
pub(in crate::shell) fn definitions() -> [ToolDef; 3] {
    [
        ToolDef::new::<JobParams>(JOB_OUTPUT, "New output of a job; waits up to 2 s.", LOOK)
            .with_cache(CachePolicy::LEAVES_FILES)
            .with_param_aliases(ALIASES),
        ToolDef::new::<JobParams>(JOB_KILL, "End a job whose work is not needed.", END)
            .with_param_aliases(ALIASES),
        ToolDef::new::<NoParams>(JOB_LIST, "List jobs, to find an id.", LOOK)
            .with_cache(CachePolicy::LEAVES_FILES),
    ]
    .map(|def| def.offered(Availability::OnceNamed(JOB_OUTPUT)))
}
