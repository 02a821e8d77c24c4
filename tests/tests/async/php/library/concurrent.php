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
    [$redis, $pushes] = [new Redis(), new Redis()];
    $redis->connect('127.0.0.1', (int) $_GET['redis']);
    $pushes->connect('127.0.0.1', (int) $_GET['redis']);
    [$near, $far] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    // Each holder waits for something that happens only after the other was refused: a lock, an element, bytes.
    $locks = new PDO("mysql:host=127.0.0.1;port=$sql", 'tester', '');
    $locks->query("SELECT GET_LOCK('pdo', 0), GET_LOCK('mysqli', 0)")->fetchAll();
    $unlock = static fn (string $name) => $locks->query("SELECT RELEASE_LOCK('$name')")->fetchAll();
    $statement = $pdo->prepare("SELECT GET_LOCK('pdo', 50)");
    $cases = [
        'PDO' => [static fn () => $statement->execute(), static fn () => $pdo->query('SELECT 1'), static fn () => $unlock('pdo'), true],
        'mysqli' => [static fn () => $mysqli->query("SELECT GET_LOCK('mysqli', 50)")->fetch_row(), static fn () => mysqli_query($mysqli, 'SELECT 1'), static fn () => $unlock('mysqli'), ['1']],
        'redis' => [static fn () => $redis->blPop('list', 50), static fn () => $redis->get('a'), static fn () => $pushes->rPush('list', 'it'), ['list', 'it']],
        'stream' => [static fn () => fread($near, 5), static fn () => fread($near, 5), static fn () => fwrite($far, 'hello'), 'hello'],
    ];
    foreach ($cases as $name => [$first, $second, $release, $expected]) {
        $holder = go(static fn () => holds($first));
        suspend();
        $error = null;
        try {
            wants($second);
            // Streams cannot throw: the next call does.
            suspend();
        } catch (ConcurrentUseError $error) {
        }
        $release();
        $result = $holder->await();
        if ($error === null) {
            $is("$name: refused", false, true);
            continue;
        }
        [$own, $other, $text] = [$error->getTraceAsString(), $error->getOtherTraceAsString(), (string) $error];
        $is("$name: own stack", [str_contains($own, 'wants(') || $name === 'stream', str_contains($own, 'holds(')], [true, false]);
        $is("$name: the other's stack", [str_contains($other, 'holds('), str_contains($other, 'wants('), str_contains($other, __FILE__)], [true, false, true]);
        $is("$name: text", [str_contains($text, $own), str_contains($text, 'holds(')], [true, true]);
        $is("$name: the owner's result", $result, $expected);
    }
};
