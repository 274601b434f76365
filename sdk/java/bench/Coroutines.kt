import com.github.firnid.client.Client
import java.lang.management.ManagementFactory
import java.util.concurrent.atomic.AtomicInteger
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.future.await
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking

/** Calls a client that has no IDs yet in many coroutines at once, and prints what that cost. */
fun main(args: Array<String>) {
    val (url, call, count) = args
    val threads = ManagementFactory.getThreadMXBean()
    runBlocking(Dispatchers.Default) { launch {} }
    val idle = threads.threadCount
    threads.resetPeakThreadCount()
    val failed = AtomicInteger()
    Client(listOf(url)).use { client ->
        val start = System.nanoTime()
        val ids = runBlocking(Dispatchers.Default) {
            (1..count.toInt()).map {
                async {
                    runCatching {
                        when (call) {
                            "next" -> client.sequencer("orders").nextAsync().await()
                            "take" -> client.sequencer("orders").takeAsync(5).await()[0]
                            else -> client.sequencer("cold$it").nextAsync().await() // each of another name
                        }
                    }.onFailure { failed.incrementAndGet() }.getOrNull()
                }
            }.awaitAll()
        }
        val took = (System.nanoTime() - start) / 1_000_000
        val more = threads.peakThreadCount - idle
        val cpus = Runtime.getRuntime().availableProcessors()
        println("$call in $count coroutines, $cpus processors: ${ids.toSet().size} IDs, $failed failures, $more threads, $took ms")
    }
}
