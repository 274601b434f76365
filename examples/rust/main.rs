use redis::{Client, Connection, RedisResult, cmd}; // cargo run [PORT]
use std::{env, time::Duration};

fn next_id(firn: &mut Connection) -> RedisResult<i64> {
    cmd("NEXT").arg("orders").query(firn)
}

fn next_ids(firn: &mut Connection, count: usize) -> RedisResult<Vec<i64>> {
    cmd("NEXT").arg("orders").arg(count).query(firn)
}

fn main() -> RedisResult<()> {
    let port = env::args().nth(1).unwrap_or("3476".into());
    let client = Client::open(format!("redis://127.0.0.1:{port}"))?;
    let mut firn = client.get_connection_with_timeout(Duration::from_secs(1))?;
    firn.set_read_timeout(Some(Duration::from_secs(2)))?;
    println!("{}", next_id(&mut firn)?);
    next_ids(&mut firn, 100)?.iter().for_each(|id| println!("{id}"));
    Ok(())
}
