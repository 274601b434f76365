<?php // php ids.php [PORT], with the extension redis
$port = (int) ($argv[1] ?? 3476);

$firn = new Redis();
// php-fpm keeps this connection of the worker process between requests.
// The timeouts, in seconds, are of connecting and of one answer.
$firn->pconnect("127.0.0.1", $port, 1.0, null, 0, 2.0);

function ids(Redis $firn, int $count): array
{
    $texts = $firn->rawCommand("NEXT", "orders", $count);
    if (!is_array($texts)) {
        throw new RuntimeException($firn->getLastError());
    }
    return array_map(intval(...), $texts); // 64-bit integers
}

echo ids($firn, 1)[0], "\n", implode("\n", ids($firn, 100)), "\n";
