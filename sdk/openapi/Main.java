import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.IdsApi;
import org.openapitools.client.api.SequencersApi;
import org.openapitools.client.model.Settings;

/** Uses a server through a client that openapi-generator made. */
class Main {
	public static void main(String[] args) throws ApiException {
		var client = new ApiClient().setBasePath(args[0]);
		var ids = new IdsApi(client);
		var sequencers = new SequencersApi(client);

		List<String> made = ids.next("orders", 3, null, null).getIDs().getIds();
		var runs = ids.next("orders", 3, null, true).getRuns().getRuns();
		check(made.size() == 3 && runs.get(0).getCount() == 3);
		var read = ids.inspect(made.get(0), "default", null, null);
		check(read.getDec().equals(made.get(0)) && read.getOthers().isEmpty());
		var uuid = ids.inspect("919108f7-52d1-4320-9bac-f847db4148a8", null, null, null);
		check(uuid.getLayout().equals("uuidv4") && uuid.getTime() == null);
		var column = ids.inspectColumn(String.join("\n", made), null, null);
		check(column.getCount() == 3 && column.getLastMs() > 1L << 40);
		check(sequencers.createSequencer("java", new Settings().window("20s")).getWindow().equals("20s"));
		check(sequencers.getSequencer("orders").getNodes().size() == 1);
		check(sequencers.listSequencers().getSequencers().size() > 1);
		check(sequencers.listMembers().getMembers().size() == 1);
		try {
			ids.next("orders", null, "nonsense", null);
			check(false);
		} catch (ApiException e) {
			check(e.getCode() == 400);
		}
		System.exit(0); // the client's threads would go on for a minute
	}

	private static void check(boolean ok) {
		if (!ok) {
			throw new AssertionError();
		}
	}
}
