import com.github.f4b6a3.tsid.TsidFactory;
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;

/** Writes IDs of tsid-creator, with the node ID of the environment, to used-PID in a directory. */
class Main {
    public static void main(String[] args) throws Exception {
        var factory = TsidFactory.builder().withNodeBits(10).withNode(Integer.parseInt(System.getenv("NODE_ID"))).build();
        try (var file = new FileOutputStream(args[0] + "/used-" + ProcessHandle.current().pid())) {
            while (true) {
                file.write((factory.create().toLong() + "\n").getBytes(StandardCharsets.UTF_8));
                Thread.sleep(1);
            }
        }
    }
}
