//! How long a decision takes: `cargo run --release -p dyad-core --example decide_speed FACTS.json`.

use std::hint::black_box;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which document of facts?")?;
    let facts: dyad_core::Facts = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let rounds = 1_000_000_u32;
    let clock = Instant::now();
    for _ in 0..rounds {
        black_box(dyad_core::decide(black_box(&facts)));
    }
    println!("{:.0} ns for a decision", clock.elapsed().as_secs_f64() * 1e9 / f64::from(rounds));
    Ok(())
}
