<?php // Clients for PHP: php.php CLIENT PORT.
[, $client, $port] = $argv;
if ($client === "predis") {
    require "Predis/Autoloader.php";
    Predis\Autoloader::register();
    $r = new Predis\Client(["host" => "127.0.0.1", "port" => (int) $port]);
    $r->connect();
    $call = fn (...$args) => $r->executeRaw($args);
} elseif ($client === "phpredis-cluster") {
    try {
        new RedisCluster(null, ["127.0.0.1:$port"]);
        echo "next";
    } catch (RedisClusterException $e) {
        echo "error ", $e->getMessage();
    }
    exit;
} else {
    $r = new Redis();
    $r->connect("127.0.0.1", (int) $port);
    $call = fn (...$args) => $r->rawCommand(...$args);
}
sleep((int) getenv("SILENT"));
echo "next ", $call("NEXT", "orders"), "\n";
echo "three ", implode(" ", $call("NEXT", "orders", "3")), "\n";
for ($i = 0; $i < 100; $i++) {
    echo "incr ", $r->incr("orders"), "\n";
}
