<?php
$event = \Howdah\WebSocket::event();
if ($event === null) {
    if (isset($_GET['publish'])) {
        \Howdah\WebSocket::publish($_GET['publish'], 'to all');
    } elseif (isset($_GET['sleep'])) {
        sleep(60);
    } elseif (isset($_GET['inside'])) {
        echo $GLOBALS['inside'] ?? 'nothing';
    } else {
        try {
            \Howdah\WebSocket::accept();
        } catch (\Error $error) {
            echo $error->getMessage();
        }
    }
    return;
}
require_once 'gate.php';
if (isset($_GET['refuse'])) {
    http_response_code(403);
    return;
}
session_start();
$_SESSION['seen'] = 'yes';
setcookie('seen', 'yes');
header('Sec-WebSocket-Protocol: chat');
$connection = \Howdah\WebSocket::accept();
$note = fn(string $text) => file_put_contents(__DIR__ . '/closed', "$text\n", FILE_APPEND | LOCK_EX);
if (isset($_GET['room'])) {
    \Howdah\WebSocket::subscribe($connection->id, $_GET['room']);
}
$connection->send("welcome $connection->id");
$run = function () use ($connection, $note): void {
    foreach ($connection as $number => $message) {
        switch ($message) {
            case 'wait':
                try {
                    $connection->receive(0.05);
                } catch (\Howdah\TimeoutException $exception) {
                    $connection->send($exception->getMessage());
                }
                break;
            case 'twice':
                $other = \Howdah\go(fn() => $connection->receive());
                \Howdah\suspend();
                try {
                    $connection->receive();
                } catch (\Howdah\ConcurrentUseError $error) {
                    $connection->send($error->getMessage());
                    $connection->send($other->await());
                }
                break;
            case 'senders':
                $tasks = [];
                foreach (range(1, 10) as $sender) {
                    $tasks[] = \Howdah\go(function () use ($connection, $sender): void {
                        foreach (range(1, 20) as $part) {
                            $connection->send(str_repeat((string) ($sender % 10), 100000));
                        }
                    });
                }
                foreach ($tasks as $task) {
                    $task->await();
                }
                $connection->send('all sent');
                break;
            case 'cancelled senders':
                $blocked = \Howdah\go(function () use ($connection): void {
                    while ($connection->send(str_repeat('x', 1 << 20))) {
                    }
                });
                usleep(500_000);
                $next = \Howdah\go(fn() => $connection->send('next'));
                $last = \Howdah\go(fn() => $connection->send('last'));
                \Howdah\suspend();
                $blocked->cancel();
                $next->cancel();
                // The part that was cut off ends the connection.
                $note('last: ' . json_encode($last->await()));
                return;
            case 'gate':
                gate('g');
                break;
            case 'count':
                for ($count = 0, $bytes = 0; ($message = $connection->receive()) !== 'end'; $count++) {
                    $bytes += strlen($message);
                }
                $connection->send("$count $bytes");
                break;
            case 'bye':
                $connection->close(4000, 'bye');
                $note("$connection->code unasked, " . json_encode([$connection->receive(), $connection->send('x')]));
                return;
            case 'return':
                return;
            case 'exit':
                exit;
            case 'crash':
                eval('abstract class A { abstract function f(); } class B extends A {}');
                return;
            case 'throw':
                throw new \Exception('thrown');
            case 'die':
                posix_kill(getmypid(), SIGKILL);
                return;
            default:
                $connection->send("$number $message {$_COOKIE['id']}", $connection->binary);
        }
    }
    $note("$connection->code $connection->reason");
};
$run();
