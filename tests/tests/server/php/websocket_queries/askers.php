<?php
// Three times as many questions as may be unanswered at once, while a coroutine counts.
$file = static fn (string $name): string => __DIR__ . "/$name";
$ticks = 0;
$counter = \Howdah\go(static function () use (&$ticks, $file): void {
    while (!file_exists($file('end'))) {
        file_put_contents($file('ticks'), (string) ++$ticks);
        usleep(2000);
    }
});
while (!file_exists($file('ask'))) {
    usleep(2000);
}
$askers = [];
for ($i = 0; $i < 48; $i++) {
    $askers[] = \Howdah\go(static fn (): array => [\Howdah\WebSocket::exists("none $i"), \Howdah\WebSocket::count()]);
}
$cancelled = \Howdah\go(static fn (): int => \Howdah\WebSocket::count());
$waits = \Howdah\go(static function () use ($file): int {
    file_put_contents($file('asked'), '');
    return \Howdah\WebSocket::count();
});
\Howdah\delay(0.01);
$cancelled->cancel();
$answers = array_map(static fn ($asker): array => \Howdah\await($asker), $askers);
try {
    $result = \Howdah\await($cancelled);
} catch (\Howdah\CancelledException) {
    $result = 'cancelled';
}
$last = \Howdah\await($waits);
touch($file('end'));
\Howdah\await($counter);
echo json_encode([array_unique($answers, SORT_REGULAR), $result, $last]);
