//! `devices`: what models can run on.

use audiocpp::backend::{
    BackendType, DeviceInfo, Inventory, Request, Verdict, backend,
    memory::{Amount, human},
    probe::AMD,
    spec::DeviceSpec,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    device_trial::inventory,
    failure::{Failure, Outcome},
    models::{print_json, table},
    output::print,
};

/// One device for programs.
#[derive(Serialize)]
struct Row<'a> {
    /// What names it on the command line.
    device: String,
    #[serde(flatten)]
    info: &'a DeviceInfo,
    /// What large matrix products run through.
    gemm: String,
    /// Whether kernels are captured as GPU graphs, and why.
    graphs: Value,
    /// `usable`, or why not.
    status: String,
    /// Whether `auto` takes it.
    auto: bool,
}

/// A GPU that the system has and no backend offers, for programs.
fn unused(inventory: &Inventory) -> Vec<Value> {
    let gpus = inventory.unused_gpus().into_iter();
    gpus.map(|gpu| {
        json!({
            "pci": gpu.pci,
            "vendor": format!("{:#06x}", gpu.vendor),
            "gfx": gpu.gfx,
            "name": gpu.product,
            "reason": inventory.why_missing(kind_of(gpu.vendor)),
        })
    })
    .collect()
}

/// The backend that a vendor's GPUs are best used through.
fn kind_of(vendor: u32) -> BackendType {
    match vendor {
        AMD => BackendType::Hip,
        0x10de => BackendType::Cuda,
        _ => BackendType::Vulkan,
    }
}

fn rows(inventory: &Inventory) -> Vec<Row<'_>> {
    let plan = inventory.plan(&Request::new(DeviceSpec::Auto)).ok();
    let first = plan.as_ref().and_then(|plan| plan.candidates.first());
    let devices = inventory.devices.iter();
    devices
        .map(|info| {
            let backend = backend(info.backend);
            let graphs = backend.map(|backend| backend.graphs(info));
            Row {
                device: info.spec(),
                info,
                gemm: backend.map_or(String::new(), |backend| backend.gemm_route(info)),
                graphs: json!(graphs),
                status: match inventory.judge(info) {
                    Verdict::Usable => "usable".to_owned(),
                    Verdict::Doubtful(reason) => format!("not under auto: {reason}"),
                    Verdict::Unusable(reason) => format!("unusable: {reason}"),
                },
                auto: first == Some(info),
            }
        })
        .collect()
}

fn amount(amount: Amount) -> String {
    amount.bytes.map_or("?".to_owned(), human)
}

/// Prints the devices, the best one marked.
pub fn run(as_json: bool) -> Outcome {
    let inventory = inventory();
    let rows = rows(&inventory);
    let unused = unused(&inventory);
    if as_json {
        print_json(&json!({ "schema_version": 1, "devices": rows, "unused": unused }))?;
    } else {
        print(&text(&rows))?;
        for gpu in inventory.unused_gpus() {
            let gfx = gpu.gfx.map_or(String::new(), |gfx| format!(" {gfx}"));
            let name = gpu.product.as_deref().unwrap_or("GPU");
            let reason = inventory.why_missing(kind_of(gpu.vendor));
            print(&format!("{} {name}{gfx}: not usable: {reason}\n", gpu.pci))?;
        }
    }
    if rows.is_empty() {
        let reason = inventory.why_missing(BackendType::Cpu);
        return Err(Failure::usage(format!("no device at all: {reason}")));
    }
    Ok(())
}

fn text(rows: &[Row<'_>]) -> String {
    let head = [
        "DEVICE", "NAME", "CLASS", "GFX", "PCI", "FREE", "TOTAL", "GEMM", "GRAPHS", "STATUS",
    ];
    let mut lines = vec![head.map(str::to_owned)];
    for row in rows {
        let info = row.info;
        let dash = || "-".to_owned();
        let graphs = match &row.graphs["gpu_graphs"] {
            Value::Bool(true) => "on",
            Value::Bool(false) if info.is_gpu() => "off",
            _ => "-",
        };
        let star = if row.auto { " (auto)" } else { "" };
        lines.push([
            row.device.clone(),
            info.description.clone(),
            format!("{:?}", info.class).to_lowercase(),
            info.gfx.map_or_else(dash, |gfx| gfx.to_string()),
            info.pci.map_or_else(dash, |pci| pci.to_string()),
            amount(info.memory.free),
            amount(info.memory.total),
            row.gemm.clone(),
            graphs.to_owned(),
            format!("{}{star}", row.status),
        ]);
    }
    table(&lines)
}
