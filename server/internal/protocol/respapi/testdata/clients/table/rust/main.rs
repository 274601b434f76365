// Clients for Rust: main CLIENT PORT.
use fred::{prelude::*, types::{ClusterHash, CustomCommand}};
use std::{env, thread::sleep, time::Duration};

fn silence() {
    sleep(Duration::from_secs(env::var("SILENT").unwrap().parse().unwrap()));
}

fn redis_rs(url: String) -> redis::RedisResult<()> {
    let mut r = redis::Client::open(url)?.get_connection()?;
    silence();
    let next: String = redis::cmd("NEXT").arg("orders").query(&mut r)?;
    println!("next {next}");
    let three: Vec<String> = redis::cmd("NEXT").arg("orders").arg(3).query(&mut r)?;
    println!("three {}", three.join(" "));
    for _ in 0..100 {
        let id: i64 = redis::TypedCommands::incr(&mut r, "orders", 1)? as i64;
        println!("incr {id}");
    }
    Ok(())
}

async fn fred(url: String) -> Result<(), fred::error::Error> {
    let r = Builder::from_config(Config::from_url(&url)?).build()?;
    r.init().await?;
    silence();
    let command = CustomCommand::new_static("NEXT", ClusterHash::FirstKey, false);
    let next: String = r.custom(command.clone(), vec!["orders"]).await?;
    println!("next {next}");
    let three: Vec<String> = r.custom(command, vec!["orders", "3"]).await?;
    println!("three {}", three.join(" "));
    for _ in 0..100 {
        let id: i64 = r.incr("orders").await?;
        println!("incr {id}");
    }
    Ok(())
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = env::args().collect();
    let url = format!("redis://127.0.0.1:{}", args[2]);
    let error = match args[1].as_str() {
        "fred" => fred(url).await.err().map(|e| e.to_string()),
        "redis-rs-3" => redis_rs(url + "?protocol=resp3").err().map(|e| e.to_string()),
        _ => redis_rs(url).err().map(|e| e.to_string()),
    };
    if let Some(e) = error {
        println!("error {e}");
    }
}
