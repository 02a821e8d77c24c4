<?php
$publish = static function (mixed ...$arguments): string {
    try {
        return mercure_publish(...$arguments);
    } catch (Throwable $why) {
        return $why::class . ': ' . $why->getMessage();
    }
};
echo json_encode(match ($_GET['case'] ?? '') {
    'wrong' => [
        $publish([]),
        $publish(''),
        $publish(['a', 1]),
        $publish(array_fill(0, 101, 'a')),
        $publish("a\nb"),
        $publish('a', str_repeat('x', (1 << 20) + 1)),
        $publish('a', '', false, "1\n2"),
        $publish('a', '', false, '#1'),
        $publish('a', '', false, 'earliest'),
        $publish('a', '', false, null, "b\0"),
    ],
    'some' => [
        $publish('t', "a\nb"),
        $publish(['other', 't'], 'named', false, 'urn:1', 'changed', 700),
        $publish('t', 'secret', true, 'urn:2'),
        $publish('t', str_repeat('x', 300_000), false, 'urn:3'),
    ],
    default => [$publish('t')],
});
