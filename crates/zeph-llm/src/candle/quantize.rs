//! Conversion of a GGUF file to a form for which the kernels here are fast.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use candle_core::Device;
use candle_core::quantized::{GgmlDType, QTensor, gguf_file};

use super::gguf::Gguf;
use super::words;

/// Writes `from` to `to` with its matrices as Q8_0 and everything else unchanged; the bytes are on disk when this
/// returns. Forms that are already fast (Q4_0, Q8_0, the K forms) are not converted.
///
/// # Errors
/// The file is invalid, or the disk is full.
pub fn requantize(from: &Path, to: &Path) -> Result<(), String> {
    let mut gguf = Gguf::open(from)?;
    let mut names: Vec<String> = gguf.content().tensor_infos.keys().cloned().collect();
    names.sort_by_key(|name| gguf.content().tensor_infos.get(name).map(|it| it.offset));
    let mut tensors = Vec::with_capacity(names.len());
    for name in names {
        let tensor = gguf.tensor(&name).and_then(fast);
        tensors.push((name, tensor.map_err(words)?));
    }
    let file = File::create(to).map_err(words)?;
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    let mut metadata: Vec<_> = gguf.content().metadata.iter().collect();
    metadata.sort_by_key(|(key, _)| key.as_str());
    // Architecture first, as readers expect it.
    metadata.sort_by_key(|(key, _)| key.as_str() != "general.architecture");
    let metadata: Vec<_> = metadata
        .into_iter()
        .map(|(key, value)| (key.as_str(), value))
        .collect();
    let tensors: Vec<_> = tensors
        .iter()
        .map(|(name, tensor)| (name.as_str(), tensor))
        .collect();
    gguf_file::write(&mut writer, &metadata, &tensors).map_err(words)?;
    writer.flush().map_err(words)?;
    let file = writer.into_inner().map_err(words)?;
    file.sync_all().map_err(words)
}

/// A matrix in a form that is computed fast.
fn fast(tensor: QTensor) -> candle_core::Result<QTensor> {
    let is_slow = matches!(
        tensor.dtype(),
        GgmlDType::Q4_1
            | GgmlDType::Q5_0
            | GgmlDType::Q5_1
            | GgmlDType::Q8_1
            | GgmlDType::F32
            | GgmlDType::F16
            | GgmlDType::BF16
    );
    let width = tensor.shape().dims().last().copied().unwrap_or(0);
    let fits = tensor.rank() == 2 && width.is_multiple_of(GgmlDType::Q8_0.block_size());
    match is_slow && fits {
        true => QTensor::quantize(&tensor.dequantize(&Device::Cpu)?, GgmlDType::Q8_0),
        false => Ok(tensor),
    }
}
