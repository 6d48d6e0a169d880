//! Every operator of the graph layer against its definition in f64, over many shapes, types and
//! memory layouts, on every device that is loaded (see `graph/mod.rs`).
//!
//! Tolerances are relative to the largest magnitude of the wanted result and stated with each
//! operator. f32 operators get 1e-6 to 5e-6 (a few roundings); products and sums grow with their
//! length. f16 has 11 bits of precision (5e-4), bf16 has 8 (4e-3). Products with quantised weights
//! also quantise the other side to 8 bits, in blocks of 32 or 256 values (1e-2).

mod graph;

#[path = "graph/attention.rs"]
mod attention;
#[path = "graph/axes.rs"]
mod axes;
#[path = "graph/convolution.rs"]
mod convolution;
#[path = "graph/elementwise.rs"]
mod elementwise;
#[path = "graph/products.rs"]
mod products;
#[path = "graph/rows.rs"]
mod rows;
