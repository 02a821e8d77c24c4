<?php
/* Two coroutines want one connection: the second is refused, with the stacks of both. */
use Howdah\ConcurrentUseError;
use function Howdah\{go, suspend};

function holds(callable $use): mixed
{
    return $use();
}

function wants(callable $use): mixed
{
    return $use();
}

return static function (callable $is): void {
    $sql = (int) $_GET['sql'];
    $pdo = new PDO("mysql:host=127.0.0.1;port=$sql", 'tester', '');
    $mysqli = new mysqli('127.0.0.1', 'tester', '', null, $sql);
    $redis = new Redis();
    $redis->connect('127.0.0.1', (int) $_GET['redis']);
    [$near, $far] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    $statement = $pdo->prepare('SELECT SLEEP(0.3)');
    $cases = [
        'PDO' => [static fn () => $statement->execute(), static fn () => $pdo->query('SELECT 1')],
        'mysqli' => [static fn () => $mysqli->query('SELECT SLEEP(0.3)')->fetch_row(), static fn () => mysqli_query($mysqli, 'SELECT 1')],
        'redis' => [static fn () => $redis->blPop('nothing', 1), static fn () => $redis->get('a')],
        'stream' => [static fn () => fread($near, 5), static fn () => fread($near, 5)],
    ];
    foreach ($cases as $name => [$first, $second]) {
        $holder = go(static fn () => holds($first));
        suspend();
        $error = null;
        try {
            wants($second);
            // Streams cannot throw: it is done at the next call.
            suspend();
        } catch (ConcurrentUseError $error) {
        }
        $name === 'stream' && fwrite($far, 'hello');
        $result = $holder->await();
        if ($error === null) {
            $is("$name: refused", false, true);
            continue;
        }
        [$own, $other, $text] = [$error->getTraceAsString(), $error->getOtherTraceAsString(), (string) $error];
        $is("$name: own stack", [str_contains($own, 'wants(') || $name === 'stream', str_contains($own, 'holds(')], [true, false]);
        $is("$name: the other's stack", [str_contains($other, 'holds('), str_contains($other, 'wants('), str_contains($other, __FILE__)], [true, false, true]);
        $is("$name: text", [str_contains($text, $own), str_contains($text, 'holds(')], [true, true]);
        $is("$name: the owner's result", $result !== false || $name === 'redis', true);
    }
};
