<?php
foreach (range(1, 200) as $i) {
    Howdah\go(static function () use ($i): void {
        ob_start();
        usleep(1000 * ($i % 5));
        echo $i;
        ob_end_clean();
        usleep(1000);
    });
}
Howdah\handle_request(static function (): void {
    echo 'served beside ', Howdah\Coroutine::count() - 1;
});
