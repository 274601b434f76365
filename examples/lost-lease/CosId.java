import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executors;

import me.ahoo.cosid.machine.AbstractMachineIdDistributor;
import me.ahoo.cosid.machine.ClockBackwardsSynchronizer;
import me.ahoo.cosid.machine.DefaultMachineIdGuarder;
import me.ahoo.cosid.machine.InMemoryMachineStateStorage;
import me.ahoo.cosid.machine.InstanceId;
import me.ahoo.cosid.machine.MachineIdLostException;
import me.ahoo.cosid.machine.MachineIdOverflowException;
import me.ahoo.cosid.machine.MachineState;
import me.ahoo.cosid.snowflake.ClockSyncSnowflakeId;
import me.ahoo.cosid.snowflake.MillisecondSnowflakeId;
import me.ahoo.cosid.snowflake.SnowflakeId;

/**
 * Two processes share a table of machine IDs, and the first one loses its connection to the table.
 * The generators, the guard of the machine ID and the local state are those of cosid-core. The
 * table and its conditions, those of a lease with an expiry, are written here.
 */
public class CosId {
    static final Duration LEASE = Duration.ofSeconds(2);
    static final Duration HEARTBEAT = Duration.ofMillis(500);

    /** The rows of the machine IDs: who holds each one, and its last heartbeat. */
    static class Table {
        record Row(InstanceId owner, long heartbeat) {}

        final List<Row> rows = new ArrayList<>();

        synchronized int take(InstanceId owner, int machineBits, long now) {
            for (int id = 0; id < rows.size(); id++) {
                if (rows.get(id).heartbeat() + LEASE.toMillis() < now) {
                    rows.set(id, new Row(owner, now));
                    return id;
                }
            }
            if (rows.size() == 1 << machineBits) {
                throw new MachineIdOverflowException(rows.size(), owner);
            }
            rows.add(new Row(owner, now));
            return rows.size() - 1;
        }

        synchronized boolean renew(int id, InstanceId owner, long now) {
            if (!rows.get(id).owner().equals(owner)) {
                return false;
            }
            rows.set(id, new Row(owner, now));
            return true;
        }
    }

    /** The way of one process to the table. */
    static class Distributor extends AbstractMachineIdDistributor {
        final Table table;
        volatile boolean cut;

        Distributor(Table table) {
            super(new InMemoryMachineStateStorage(), ClockBackwardsSynchronizer.DEFAULT);
            this.table = table;
        }

        @Override
        protected MachineState distributeRemote(String namespace, int machineBits, InstanceId id, Duration lease) {
            long now = System.currentTimeMillis();
            return MachineState.of(table.take(id, machineBits, now), now);
        }

        @Override
        protected void guardRemote(String namespace, InstanceId id, MachineState state, Duration lease) {
            if (cut) {
                throw new UncheckedIOException(new IOException("no route to the table"));
            }
            if (!table.renew(state.getMachineId(), id, System.currentTimeMillis())) {
                throw new MachineIdLostException(namespace, id, state);
            }
        }

        @Override
        protected void revertRemote(String namespace, InstanceId id, MachineState state) {}
    }

    /** A process: its distributor, its guard and its generator. */
    static class Process {
        final Distributor distributor;
        final DefaultMachineIdGuarder guard;
        final SnowflakeId generator;
        final Set<Long> made = new HashSet<>();

        Process(String name, Table table) {
            distributor = new Distributor(table);
            InstanceId id = InstanceId.of(name, false);
            int machine = distributor.distribute("orders", 10, id, LEASE).getMachineId();
            guard = new DefaultMachineIdGuarder(distributor, Executors.newSingleThreadScheduledExecutor(),
                HEARTBEAT, HEARTBEAT, LEASE);
            guard.register("orders", id);
            guard.start();
            generator = new ClockSyncSnowflakeId(new MillisecondSnowflakeId(machine));
            System.out.println(name + " has machine ID " + machine);
        }
    }

    public static void main(String[] args) throws InterruptedException {
        Table table = new Table();
        Process first = new Process("process 1", table);
        first.distributor.cut = true;
        System.out.println("process 1 is cut off from the store");
        Thread.sleep(LEASE.plus(HEARTBEAT).toMillis());
        Process second = new Process("process 2", table);
        for (int i = 0; i < 2000; i++) {
            first.made.add(first.generator.generate());
            second.made.add(second.generator.generate());
            Thread.sleep(1);
        }
        Set<Long> twice = new HashSet<>(first.made);
        twice.retainAll(second.made);
        System.out.printf("CosId: process 1 made %d IDs, process 2 made %d: %d IDs exist twice%n",
            first.made.size(), second.made.size(), twice.size());
        System.exit(0); // stop() of the guards would not end their executors
    }
}
