//! Qwen2 on the CPU: quantised weights, embedding rows looked up where they lie, and a memory that we own.

use std::io::{Read, Seek};
use std::sync::Arc;

use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{D, DType, Device, Module, Result, Tensor, bail};
use candle_nn::attention::{AttnMask, flash_attn};
use candle_nn::ops::rms_norm;
use candle_nn::rotary_emb::rope_thd;

/// How many tokens the memory grows by.
const GROWTH: usize = 512;

/// The weights. Never changes once it is loaded.
pub(super) struct Engine {
    // The quantised table itself: dequantised it would take another 0.9 GB.
    embedding: Arc<QTensor>,
    layers: Vec<Layer>,
    norm: Tensor,
    head: QMatMul,
    cos: Tensor,
    sin: Tensor,
    sizes: Sizes,
}

/// The model's dimensions.
#[derive(Clone, Copy)]
struct Sizes {
    layers: usize,
    heads: usize,
    kv_heads: usize,
    head: usize,
    epsilon: f32,
    base: f32,
}

struct Layer {
    attention_norm: Tensor,
    query: Linear,
    key: Linear,
    value: Linear,
    output: QMatMul,
    norm: Tensor,
    gate: QMatMul,
    up: QMatMul,
    down: QMatMul,
}

struct Linear {
    weight: QMatMul,
    bias: Tensor,
}

impl Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.weight.forward(x)?.broadcast_add(&self.bias)
    }
}

/// What the model has read: its tokens, and per layer what attention looks back at.
pub(super) struct Memory {
    tokens: Vec<u32>,
    layers: Vec<Look>,
}

/// Keys and values of one layer, `[1, capacity, heads, width]`.
pub(super) struct Look {
    pub(super) keys: Tensor,
    pub(super) values: Tensor,
}

impl Memory {
    /// The tokens that it holds.
    pub(super) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Forgets all but the first tokens.
    pub(super) fn keep(&mut self, tokens: usize) {
        self.tokens.truncate(tokens);
    }

    /// What it holds, in half precision: enough for the model, and half the bytes on disk.
    pub(super) fn halves(&self) -> Result<Vec<Look>> {
        let half = |t: &Tensor| t.narrow(1, 0, self.tokens.len())?.to_dtype(DType::F16);
        self.layers.iter().map(|l| Ok(Look { keys: half(&l.keys)?, values: half(&l.values)? })).collect()
    }
}

impl Look {
    fn grow(&mut self, tokens: usize) -> Result<()> {
        for tensor in [&mut self.keys, &mut self.values] {
            let (one, old, heads, width) = tensor.dims4()?;
            if tokens > old {
                let larger =
                    Tensor::zeros((one, tokens.next_multiple_of(GROWTH), heads, width), DType::F32, &Device::Cpu)?;
                larger.slice_set(tensor, 1, 0)?;
                *tensor = larger;
            }
        }
        Ok(())
    }
}

impl Engine {
    /// Reads the weights.
    ///
    /// # Errors
    /// What the file lacks, or why it cannot be read.
    pub(super) fn load<R: Read + Seek>(content: &Content, file: &mut R, context: usize) -> Result<Self> {
        let mut store = Store { content, file };
        let sizes = Sizes::read(content)?;
        let layers = (0..sizes.layers).map(|i| store.layer(i)).collect::<Result<_>>()?;
        let embedding = Arc::new(store.tensor("token_embd.weight")?);
        let has_head = content.tensor_infos.contains_key("output.weight");
        let head = if has_head { Arc::new(store.tensor("output.weight")?) } else { Arc::clone(&embedding) };
        let norm = store.plain("output_norm.weight")?;
        let (cos, sin) = rotations(sizes, context)?;
        Ok(Self { embedding, layers, norm, head: QMatMul::from_arc(head)?, cos, sin, sizes })
    }

    /// An empty memory for it.
    pub(super) fn memory(&self) -> Result<Memory> {
        let Sizes { kv_heads, head, .. } = self.sizes;
        let room = || Tensor::zeros((1, GROWTH, kv_heads, head), DType::F32, &Device::Cpu);
        let layers = self.layers.iter().map(|_| Ok(Look { keys: room()?, values: room()? })).collect::<Result<_>>()?;
        Ok(Memory { tokens: Vec::new(), layers })
    }

    /// A memory of what was read and kept earlier.
    ///
    /// # Errors
    /// It is not of this model.
    pub(super) fn remember(&self, tokens: &[u32], layers: &[Look]) -> Result<Memory> {
        let Sizes { kv_heads, head, .. } = self.sizes;
        let full = |t: &Tensor| t.to_dtype(DType::F32)?.contiguous();
        let fits = |t: &Tensor| t.dims() == [1, tokens.len(), kv_heads, head];
        if layers.len() != self.layers.len() || !layers.iter().all(|l| fits(&l.keys) && fits(&l.values)) {
            bail!("a memory of another model");
        }
        let layers = layers
            .iter()
            .map(|l| Ok(Look { keys: full(&l.keys)?, values: full(&l.values)? }))
            .collect::<Result<_>>()?;
        Ok(Memory { tokens: tokens.to_vec(), layers })
    }

    /// Reads tokens, at least one, and says how likely each token is to come next.
    pub(super) fn read(&self, memory: &mut Memory, tokens: &[u32]) -> Result<Vec<f32>> {
        let from = memory.tokens.len();
        let ids = Tensor::new(tokens, &Device::Cpu)?.unsqueeze(0)?;
        let mut x = self.embedding.embedding(&ids)?;
        for (layer, look) in self.layers.iter().zip(&mut memory.layers) {
            x = self.layer(layer, look, &x, from)?;
        }
        memory.tokens.extend_from_slice(tokens);
        let last = x.narrow(1, tokens.len() - 1, 1)?.contiguous()?;
        self.head.forward(&rms_norm(&last, &self.norm, self.sizes.epsilon)?)?.flatten_all()?.to_vec1()
    }

    fn layer(&self, layer: &Layer, look: &mut Look, x: &Tensor, from: usize) -> Result<Tensor> {
        let normed = rms_norm(x, &layer.attention_norm, self.sizes.epsilon)?;
        let x = (x + self.attention(layer, look, &normed, from)?)?;
        let normed = rms_norm(&x, &layer.norm, self.sizes.epsilon)?;
        let gated = (layer.gate.forward(&normed)?.silu()? * layer.up.forward(&normed)?)?;
        x + layer.down.forward(&gated)?
    }

    fn attention(&self, layer: &Layer, look: &mut Look, x: &Tensor, from: usize) -> Result<Tensor> {
        let Sizes { heads, kv_heads, head, .. } = self.sizes;
        let (one, count, _) = x.dims3()?;
        let cos = self.cos.narrow(0, from, count)?;
        let sin = self.sin.narrow(0, from, count)?;
        let query = rope_thd(&layer.query.forward(x)?.reshape((one, count, heads, head))?, &cos, &sin)?;
        let key = rope_thd(&layer.key.forward(x)?.reshape((one, count, kv_heads, head))?, &cos, &sin)?;
        let value = layer.value.forward(x)?.reshape((one, count, kv_heads, head))?;
        look.grow(from + count)?;
        look.keys.slice_set(&key, 1, from)?;
        look.values.slice_set(&value, 1, from)?;
        let keys = look.keys.narrow(1, 0, from + count)?;
        let values = look.values.narrow(1, 0, from + count)?;
        #[expect(clippy::cast_precision_loss, reason = "a head is 128 wide")]
        let scale = 1.0 / (head as f32).sqrt();
        let mask = AttnMask::causal_with_offset(from);
        let seen = flash_attn::<f32>(&query, &keys, &values, scale, mask, None, None)?;
        layer.output.forward(&seen.transpose(1, 2)?.reshape((one, count, heads * head))?)
    }
}

impl Sizes {
    fn read(content: &Content) -> Result<Self> {
        let architecture = value(content, "general.architecture")?.to_string()?;
        if architecture != "qwen2" {
            bail!("these are weights of the architecture {architecture}; qwen2 is needed");
        }
        let whole = |key: &str| -> Result<usize> { Ok(value(content, &format!("qwen2.{key}"))?.to_u32()? as usize) };
        let real = |key: &str| value(content, &format!("qwen2.{key}"))?.to_f32();
        let heads = whole("attention.head_count")?;
        if heads == 0 {
            bail!("no attention heads");
        }
        Ok(Self {
            layers: whole("block_count")?,
            heads,
            kv_heads: whole("attention.head_count_kv")?,
            head: whole("embedding_length")? / heads,
            epsilon: real("attention.layer_norm_rms_epsilon")?,
            base: real("rope.freq_base")?,
        })
    }
}

/// What a weights file says of itself under this key.
pub(super) fn value<'c>(content: &'c Content, key: &str) -> Result<&'c Value> {
    content.metadata.get(key).ok_or_else(|| candle_core::Error::msg(format!("the file does not say {key}")))
}

/// The angles by which queries and keys are turned, a row a position.
fn rotations(sizes: Sizes, context: usize) -> Result<(Tensor, Tensor)> {
    #[expect(clippy::cast_precision_loss, reason = "a head is 128 wide")]
    let speeds: Vec<f32> =
        (0..sizes.head).step_by(2).map(|i| sizes.base.powf(-(i as f32) / sizes.head as f32)).collect();
    let speeds = Tensor::new(speeds, &Device::Cpu)?.unsqueeze(0)?;
    let context = u32::try_from(context).map_err(candle_core::Error::wrap)?;
    let angles =
        Tensor::arange(0, context, &Device::Cpu)?.to_dtype(DType::F32)?.unsqueeze(D::Minus1)?.matmul(&speeds)?;
    Ok((angles.cos()?, angles.sin()?))
}

/// A weights file that is being read.
struct Store<'a, R> {
    content: &'a Content,
    file: &'a mut R,
}

impl<R: Read + Seek> Store<'_, R> {
    fn tensor(&mut self, name: &str) -> Result<QTensor> {
        self.content.tensor(self.file, name, &Device::Cpu)
    }

    fn plain(&mut self, name: &str) -> Result<Tensor> {
        self.tensor(name)?.dequantize(&Device::Cpu)
    }

    fn matrix(&mut self, name: &str) -> Result<QMatMul> {
        QMatMul::from_qtensor(self.tensor(name)?)
    }

    fn linear(&mut self, name: &str) -> Result<Linear> {
        Ok(Linear { weight: self.matrix(&format!("{name}.weight"))?, bias: self.plain(&format!("{name}.bias"))? })
    }

    fn layer(&mut self, index: usize) -> Result<Layer> {
        let at = |name: &str| format!("blk.{index}.{name}");
        Ok(Layer {
            attention_norm: self.plain(&at("attn_norm.weight"))?,
            query: self.linear(&at("attn_q"))?,
            key: self.linear(&at("attn_k"))?,
            value: self.linear(&at("attn_v"))?,
            output: self.matrix(&at("attn_output.weight"))?,
            norm: self.plain(&at("ffn_norm.weight"))?,
            gate: self.matrix(&at("ffn_gate.weight"))?,
            up: self.matrix(&at("ffn_up.weight"))?,
            down: self.matrix(&at("ffn_down.weight"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::quantized::{GgmlDType, gguf_file};
    use std::io::Cursor;

    const WIDTH: usize = 256;
    const WORDS: usize = 64;
    const NAMES: [(&str, usize, usize); 12] = [
        ("attn_norm.weight", 0, WIDTH),
        ("attn_q.weight", WIDTH, WIDTH),
        ("attn_q.bias", 0, WIDTH),
        ("attn_k.weight", WIDTH / 2, WIDTH),
        ("attn_k.bias", 0, WIDTH / 2),
        ("attn_v.weight", WIDTH / 2, WIDTH),
        ("attn_v.bias", 0, WIDTH / 2),
        ("attn_output.weight", WIDTH, WIDTH),
        ("ffn_norm.weight", 0, WIDTH),
        ("ffn_gate.weight", WIDTH, WIDTH),
        ("ffn_up.weight", WIDTH, WIDTH),
        ("ffn_down.weight", WIDTH, WIDTH),
    ];

    /// Numbers without a pattern, the same each time; a row where there are no rows.
    fn tensor(seed: usize, rows: usize, columns: usize) -> QTensor {
        let number = |i: usize| ((i * 7919 + seed * 104_729 + 17) % 1009) as f32 / 1009.0 - 0.5;
        let numbers: Vec<f32> = (0..rows.max(1) * columns).map(number).collect();
        let tensor = Tensor::from_vec(numbers, (rows.max(1), columns), &Device::Cpu).unwrap();
        if rows == 0 {
            return QTensor::quantize(&tensor.flatten_all().unwrap(), GgmlDType::F32).unwrap();
        }
        QTensor::quantize(&tensor, GgmlDType::Q4K).unwrap()
    }

    /// A weights file of two layers that knows nothing.
    fn toy(architecture: &str) -> Vec<u8> {
        let metadata = [
            ("general.architecture", Value::String(architecture.into())),
            ("qwen2.block_count", Value::U32(2)),
            ("qwen2.embedding_length", Value::U32(256)),
            ("qwen2.attention.head_count", Value::U32(2)),
            ("qwen2.attention.head_count_kv", Value::U32(1)),
            ("qwen2.attention.layer_norm_rms_epsilon", Value::F32(1e-6)),
            ("qwen2.rope.freq_base", Value::F32(10_000.0)),
        ];
        let layers = (0..2).flat_map(|layer| {
            NAMES.iter().enumerate().map(move |(i, (name, rows, columns))| {
                (format!("blk.{layer}.{name}"), tensor(layer * 100 + i, *rows, *columns))
            })
        });
        let ends = [("token_embd.weight", WORDS), ("output_norm.weight", 0)];
        let ends = ends.map(|(name, rows)| (name.to_owned(), tensor(rows + 1000, rows, WIDTH)));
        let tensors: Vec<(String, QTensor)> = layers.chain(ends).collect();
        let tensors: Vec<(&str, &QTensor)> = tensors.iter().map(|(name, t)| (name.as_str(), t)).collect();
        let metadata: Vec<(&str, &Value)> = metadata.iter().map(|(name, v)| (*name, v)).collect();
        let mut file = Cursor::new(Vec::new());
        gguf_file::write(&mut file, &metadata, &tensors).unwrap();
        file.into_inner()
    }

    fn load(file: Vec<u8>) -> Result<Engine> {
        let mut file = Cursor::new(file);
        let content = Content::read(&mut file)?;
        Engine::load(&content, &mut file, 2048)
    }

    /// Tokens without a pattern.
    fn tokens(count: usize) -> Vec<u32> {
        (0u32..).take(count).map(|i| (i * i + 3 * i) % 64).collect()
    }

    #[track_caller]
    fn assert_alike(one: &[f32], other: &[f32], within: f32) {
        let furthest = one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let span = one.iter().fold(0f32, |most, x| most.max(x.abs()));
        assert!(furthest <= within * span, "{furthest} of {span}");
    }

    #[test]
    fn what_is_read_in_pieces_is_what_is_read_at_once() {
        let engine = load(toy("qwen2")).unwrap();
        let all = tokens(GROWTH + 70);
        let mut memory = engine.memory().unwrap();
        let at_once = engine.read(&mut memory, &all).unwrap();
        assert_eq!((at_once.len(), memory.tokens()), (WORDS, &all[..]));
        let mut memory = engine.memory().unwrap();
        let mut last = Vec::new();
        for piece in [&all[..1], &all[1..GROWTH - 3], &all[GROWTH - 3..GROWTH + 69], &all[GROWTH + 69..]] {
            last = engine.read(&mut memory, piece).unwrap();
        }
        // Rows of several tokens and of one go through different kernels.
        assert_alike(&at_once, &last, 0.02);
        // An order that matters: the same tokens the other way round say something else.
        let mut other = engine.memory().unwrap();
        let turned: Vec<u32> = all.iter().rev().copied().collect();
        let turned = engine.read(&mut other, &turned).unwrap();
        assert!(at_once.iter().zip(&turned).any(|(a, b)| (a - b).abs() > 0.1));
    }

    #[test]
    fn what_is_forgotten_is_gone() {
        let engine = load(toy("qwen2")).unwrap();
        let all = tokens(40);
        let mut memory = engine.memory().unwrap();
        let first = engine.read(&mut memory, &all).unwrap();
        engine.read(&mut memory, &[5, 6, 7]).unwrap();
        memory.keep(39);
        assert_alike(&engine.read(&mut memory, &all[39..]).unwrap(), &first, 0.02);
    }

    #[test]
    fn what_was_kept_is_remembered() {
        let engine = load(toy("qwen2")).unwrap();
        let all = tokens(40);
        let mut memory = engine.memory().unwrap();
        engine.read(&mut memory, &all[..30]).unwrap();
        let halves = memory.halves().unwrap();
        let mut again = engine.remember(&all[..30], &halves).unwrap();
        let expect = engine.read(&mut memory, &all[30..]).unwrap();
        assert_alike(&engine.read(&mut again, &all[30..]).unwrap(), &expect, 0.05);
        let mut without = engine.memory().unwrap();
        engine.read(&mut without, &[1; 30]).unwrap();
        let without = engine.read(&mut without, &all[30..]).unwrap();
        assert!(expect.iter().zip(&without).any(|(a, b)| (a - b).abs() > 0.5), "memory matters");
        assert!(engine.remember(&all[..29], &halves).is_err());
        assert!(engine.remember(&all[..30], &halves[..1]).is_err());
    }

    #[test]
    fn what_is_no_qwen2_is_refused_in_words() {
        for (file, expect) in [
            (toy("llama"), "architecture llama; qwen2 is needed"),
            (b"GGUF".to_vec(), ""),
            (b"<html>not found</html>".to_vec(), ""),
        ] {
            let error = load(file).err().unwrap().to_string();
            assert!(error.contains(expect), "{error}");
        }
    }
}
