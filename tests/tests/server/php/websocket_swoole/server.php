<?php
/* An application of Swoole's WebSocket server. The `websocket` rule names it. */
(static function (): void {
    spl_autoload_register(static function (string $class): void {
        foreach (['Howdah\SwooleCompat\\' => 'support', 'Swoole\\' => 'src'] as $prefix => $directory) {
            $file = "__PACKAGE__/$directory/" . strtr(substr($class, strlen($prefix)), '\\', '/') . '.php';
            if (str_starts_with($class, $prefix) && is_file($file)) {
                require $file;
            }
        }
    });
    require_once '__PACKAGE__/functions.php';

    $server = new Swoole\WebSocket\Server('0.0.0.0', 9501);
    $server->set(['worker_num' => 4]);
    $server->on('Open', static function (Swoole\WebSocket\Server $server, Swoole\Http\Request $request): void {
        $server->push($request->fd, json_encode([
            $request->fd, $request->get['name'], $request->cookie['id'], $request->header['x-own'], $request->server['request_uri'],
        ]));
    });
    $server->on('message', static function (Swoole\WebSocket\Server $server, Swoole\WebSocket\Frame $frame): void {
        if ($frame->opcode === WEBSOCKET_OPCODE_BINARY) {
            $server->push($frame->fd, $frame);
            return;
        }
        [$command, $other] = explode(' ', $frame->data) + [1 => ''];
        match ($command) {
            'all' => array_map(static fn (string $fd): bool => $server->push($fd, "from $frame->fd"), [...$server->connections]),
            'count' => $server->push($frame->fd, json_encode([
                count($server->connections), $server->stats()['connection_num'], count($server->connection_list()),
                $server->getClientList(str_repeat('g', 32)), count($server->getClientList(0, 1)),
            ])),
            'about' => $server->push($frame->fd, json_encode([
                $server->exists($other), $server->isEstablished($other), $server->getClientInfo($other),
            ])),
            'end' => $server->push($frame->fd, json_encode([
                $server->disconnect($other, 4001, 'enough'), $server->isEstablished($other), $server->disconnect($other),
            ])),
            'bye' => $server->push($frame->fd, '', WEBSOCKET_OPCODE_CLOSE),
        };
    });
    $server->on('close', static function (Swoole\WebSocket\Server $server, string $fd): void {
        file_put_contents(__DIR__ . '/closed', "$fd\n", FILE_APPEND);
    });
    $server->start();
})();
