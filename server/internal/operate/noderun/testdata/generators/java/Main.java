import com.baomidou.mybatisplus.core.incrementer.DefaultIdentifierGenerator;
import com.github.f4b6a3.tsid.TsidCreator;
import com.github.yitter.contract.IdGeneratorOptions;
import com.github.yitter.idgen.YitIdHelper;
import cn.hutool.core.util.IdUtil;
import io.hypersistence.tsid.TSID;
import io.seata.common.util.IdWorker;
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.function.LongSupplier;

/** Writes IDs of a generator, with the node ID of the environment, to used-PID in a directory: Main NAME DIR. */
class Main {
    public static void main(String[] args) throws Exception {
        LongSupplier next = generator(args[0]);
        try (var file = new FileOutputStream(args[1] + "/used-" + ProcessHandle.current().pid())) {
            while (true) {
                file.write((next.getAsLong() + "\n").getBytes(StandardCharsets.UTF_8));
                Thread.sleep(1);
            }
        }
    }

    private static LongSupplier generator(String name) {
        switch (name) {
            case "mybatis-plus":
                var plus = new DefaultIdentifierGenerator(number("WORKER_ID"), number("DATACENTER_ID"));
                return () -> plus.nextId(null);
            case "hutool":
                return IdUtil.getSnowflake(number("WORKER_ID"), number("DATACENTER_ID"))::nextId;
            case "tsid-creator": // reads TSIDCREATOR_NODE
                return () -> TsidCreator.getTsid1024().toLong();
            case "hypersistence-tsid": // reads TSID_NODE
                return () -> TSID.Factory.getTsid1024().toLong();
            case "yitter":
                var options = new IdGeneratorOptions((short) number("WORKER_ID"));
                options.WorkerIdBitLength = 10;
                YitIdHelper.setIdGenerator(options);
                return YitIdHelper::nextId;
            case "seata":
                return new IdWorker(number("WORKER_ID"))::nextId;
            default:
                throw new IllegalArgumentException(name);
        }
    }

    private static long number(String variable) {
        return Long.parseLong(System.getenv(variable));
    }
}
