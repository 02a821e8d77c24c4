<?php
// Resident scripts include this file repeatedly.
if (function_exists('gate')) {
    return;
}

(function () {
    // Waits at a gate of the test: returns when the test has released it.
    function gate(string $name): void
    {
        // Opening a pipe for reading waits for its writer in the kernel, where no other coroutine can run.
        $way = function_exists('Howdah\mode') && Howdah\mode() === 'async' ? 'r+' : 'r';
        $pipe = fopen(dirname(__DIR__) . "/gates/$name", $way);
        // Read to the end: a writer that is still there would let the next script pass this gate too.
        $way === 'r' ? stream_get_contents($pipe) : fgets($pipe);
        fclose($pipe);
    }

    // Leaves a file for the test; returns the number of times that this mark was set, including this one.
    function mark(string $name): int
    {
        $path = dirname(__DIR__) . "/marks/$name";
        file_put_contents($path, '.', FILE_APPEND | LOCK_EX);
        clearstatcache();
        return filesize($path);
    }
})();
