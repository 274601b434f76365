// Uses a server through a client that openapi-generator made.
use firn_api::apis::{configuration::Configuration, ids_api, sequencers_api, Error};
use firn_api::models::{Made, Settings};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut c = Configuration::new();
    c.base_path = std::env::args().nth(1).unwrap();
    let Made::Ids(ids) = ids_api::next(&c, "orders", Some(3), None, None).await? else { panic!("runs") };
    let Made::Runs(runs) = ids_api::next(&c, "orders", Some(3), None, Some(true)).await? else { panic!("IDs") };
    assert_eq!((ids.ids.len(), runs.runs[0].count), (3, 3));
    let read = ids_api::inspect(&c, &ids.ids[0], Some("default"), None, None).await?;
    assert_eq!((&read.dec, read.others.len()), (&ids.ids[0], 0));
    let uuid = ids_api::inspect(&c, "919108f7-52d1-4320-9bac-f847db4148a8", None, None, None).await?;
    assert_eq!((uuid.layout.as_str(), uuid.time), ("uuidv4", None));
    // inspect_column is not used: this generator's Rust clients send text as a JSON string.
    let settings = Settings { window: Some("20s".into()), ..Default::default() };
    let made = sequencers_api::create_sequencer(&c, "rust", Some(settings)).await?;
    assert_eq!(made.window.as_deref(), Some("20s"));
    assert_eq!(sequencers_api::get_sequencer(&c, "orders").await?.nodes.len(), 1);
    assert!(sequencers_api::list_sequencers(&c).await?.sequencers.len() > 1);
    assert_eq!(sequencers_api::list_members(&c).await?.members.len(), 1);
    match ids_api::next(&c, "orders", None, Some("nonsense"), None).await {
        Err(Error::ResponseError(e)) if e.status == 400 => Ok(()),
        other => panic!("{other:?}"),
    }
}
